package resolve_test

import (
	"slices"
	"testing"

	"github.com/pawlrun/pawl/event"
)

// Where a copy goes to depends on its options: it is known, or asked about.
func TestWhereACopyGoesToIsKnownOrAskedAbout(t *testing.T) {
	_, ws := tree(t, "a", "d/")
	for line, outside := range map[string]bool{
		"cp a ../x":                        true,
		"cp a ../x -S .bak":                true,
		"cp a ../x --suffix .bak":          true,
		"cp a ../x --suff .bak":            true,
		"cp a ../x --suffix=.bak":          true,
		"cp -St a ../x":                    true,
		"cp -t .. a":                       true,
		"cp -t.. a":                        true,
		"cp -vt .. a":                      true,
		"cp -vt.. a":                       true,
		"cp a -t ..":                       true,
		"cp --target-directory .. a":       true,
		"cp --target-directory=.. a":       true,
		"cp --ta .. a":                     true,
		"mv -ft .. a":                      true,
		"install a ../x -m 755":            true,
		"install -m755 a ../x":             true,
		"install a ../x --mode 755":        true,
		"install -o me -g us a ../x":       true,
		"install --strip a ../x":           true,
		"install -d d/e ../x d":            true,
		"install --directory ../x d":       true,
		"ln -s ../x":                       true,
		"ln -sft d ../../x":                true,
		"ln ../x l":                        true,
		"link ../x l":                      true,
		"cp a -- ../x":                     true,
		"cp -- a ../x":                     true,
		"cp -S ../x a d":                   false,
		"cp -t d ../x":                     false,
		"cp ../x d":                        false,
		"cp -t d a -S .bak":                false,
		"cp a d --no-preserve mode":        false,
		"install -m 755 a d":               false,
		"install --mode=755 -t d a":        false,
		"ln -s a l":                        false,
		"ln -st d ../a":                    true, // from where the command runs
		"cp":                               false,
		"mv -t":                            false,
		"cp -t \"$x\" a; cp a d":           false,
		"cp --reflink=auto --backup a d/b": false,
	} {
		f := ws.Shell(line)
		got := slices.ContainsFunc(f.Paths, func(p event.PathUse) bool { return p.Outside && p.Write })
		if got != outside && len(f.Unclear) == 0 {
			t.Errorf("%q: outside %v, in %v", line, got, marks(f))
		}
	}
}

func TestAComputedWordOfACopyMayBeAnOption(t *testing.T) {
	_, ws := tree(t, "a", "d/", "-x/a")
	for line, want := range map[string]event.Risk{
		"cp $x d":         event.RiskExecute,
		`cp "$x" d`:       event.RiskExecute,
		`cp -$x a d`:      event.RiskUnknown,
		`cp -- "$x" d`:    event.RiskWrite,
		`cp d/$x e`:       event.RiskWrite,
		"cp * d":          event.RiskExecute,
		"cd e && cp * ..": event.RiskExecute,
		"cd d && cp * ..": event.RiskExecute,
		"cp e/* d":        event.RiskWrite,
	} {
		if f := ws.Shell(line); f.Risk != want {
			t.Errorf("%q is %s, want %s", line, f.Risk, want)
		}
	}
}

// What is written beside the target, or below it under a longer name.
func TestACopyThatWritesMoreThanItsTargetIsKnownForIt(t *testing.T) {
	_, ws := tree(t, "a", "d/", "evil/.git/config")
	for line, unclear := range map[string]bool{
		"cp a d/b": false, "mv -f a b": false, "install -m 755 a b": false, "ln -sfn a l": false,
		"cp --new-target=.. a d": true, "cp -Y a d": true, "mv --exchange a d": true, "cp --keep-directory-symlink a d": true, "install -h a b": true,
	} {
		if f := ws.Shell(line); len(f.Unclear) > 0 != unclear {
			t.Errorf("%s is unclear: %v", line, f.Unclear)
		}
	}
	for _, line := range []string{"cp -b -S l a agent.yam", "mv --backup=numbered a d", "ln -sb a d", "cp --suf=.pem a b", "install -bm 600 a b", "cp --parents evil/.git/config ."} {
		if f := ws.Shell(line); len(f.Unclear) == 0 {
			t.Errorf("%s: that more is written is not known: %v", line, marks(f))
		}
	}
	for _, line := range []string{"install --strip-program=./x a b", "install -s a b", "install -sm 755 a b"} {
		if f := ws.Shell(line); f.Risk == event.RiskWrite {
			t.Errorf("%s: that a program runs is not known", line)
		}
	}
}
