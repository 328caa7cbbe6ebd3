package holder_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/engine/holder"
)

func TestWhoStartedThisProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs /proc")
	}
	own := holder.Process()
	parts := strings.Split(own, "/")
	named := func(machine string, pid int, start string) string {
		return fmt.Sprintf("%s/%d/%s/x", machine, pid, start)
	}
	for name, c := range map[string]struct {
		owner string
		want  bool
	}{
		"the parent":                    {named(parts[0], os.Getppid(), ""), true},
		"a process that had its number": {named(parts[0], os.Getppid(), "1"), false},
		"this process":                  {own, false},
		"a process of another machine":  {named("elsewhere:1:2", os.Getppid(), ""), false},
		"a process that is not there":   {named(parts[0], 1<<22+1, ""), false},
		"no owner":                      {"", false},
		"a number that is none":         {parts[0] + "/x//y", false},
	} {
		if got := holder.StartedBy(c.owner); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
