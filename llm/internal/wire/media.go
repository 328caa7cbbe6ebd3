package wire

import (
	"encoding/base64"
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

// AppendBase64 appends bytes as a JSON string in base64.
func AppendBase64(dst, data []byte) []byte {
	dst = base64.StdEncoding.AppendEncode(append(dst, '"'), data)
	return append(dst, '"')
}

// AppendSource appends where an attachment is as a JSON string: its address, or
// a data URL that holds it.
func AppendSource(dst []byte, m *llm.Media) []byte {
	if len(m.Data) == 0 {
		return AppendQuoted(dst, m.URL)
	}
	dst = AppendQuoted(dst, "data:"+m.MediaType+";base64,")
	dst = base64.StdEncoding.AppendEncode(dst[:len(dst)-1], m.Data)
	return append(dst, '"')
}
