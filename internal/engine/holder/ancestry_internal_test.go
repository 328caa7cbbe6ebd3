package holder

import "testing"

// A command of a run can move to a namespace in which it sees neither its driver nor
// any other process of the machine, and change its host name.
func TestProcessThatMayHideFromDriverIsRecognized(t *testing.T) {
	const first = "laptop:b001:" + firstPIDs
	for name, c := range map[string]struct {
		owner, self string
		unseen      bool
	}{
		"the driver's own namespace":             {first, first, false},
		"a namespace within the first":           {first, "laptop:b001:7", true},
		"the same, which calls its host another": {first, "other:b001:7", true},
		"the first namespace, over a container":  {"box:b001:7", first, false},
		"a namespace within a container's":       {"box:b001:7", "box:b001:8", true},
		"another container of the machine":       {"box:b001:7", "van:b001:8", false},
		"another machine":                        {first, "laptop:b002:7", false},
		"no /proc to look into":                  {first, "laptop::", true},
		"no /proc, on another machine":           {first, "server::", false},
		"a system without namespaces":            {"mac::", "mac::", false},
		"a name somebody else gave":              {"worker-7", "laptop:b001:7", false},
		"a host whose name is an address":        {"fe80::1:b001:" + firstPIDs, "fe80::1:b001:7", true},
	} {
		if got := unseen(c.owner, c.self); got != c.unseen {
			t.Errorf("%s: unseen %t, want %t", name, got, c.unseen)
		}
	}
	if !samePIDs(first, "other:b001:"+firstPIDs) || samePIDs(first, "laptop:b002:"+firstPIDs) || samePIDs(first, "laptop:b001:7") ||
		!samePIDs("mac::", "mac::") || samePIDs("mac::", "pc::") {
		t.Error("processes are counted by another measure than boot and namespace")
	}
}
