package wire

import (
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// FileText is a text file in words, for services that take no such files. The
// name tells the model where it begins and ends.
func FileText(m *llm.Media) (text string, ok bool) {
	if !strings.HasPrefix(m.MediaType, "text/") || m.URL != "" {
		return "", false
	}
	name := strings.NewReplacer(`"`, "'", "<", "(", ">", ")", "\n", " ").Replace(m.Name)
	return `<file name="` + name + "\">\n" + strings.TrimSuffix(string(m.Data), "\n") + "\n</file>", true
}
