package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
)

// devices are the files below /dev that commands use like any others.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// rules say a view in the words of Landlock, which can only grant whole trees.
// So everything is granted around what is not: a directory that holds
// something hidden cannot be listed, and in one that holds something protected
// nothing can be made, removed or renamed.
func (v view) rules(temp, home string) *ruleset {
	closed := slices.Concat(v.hide, v.protect, v.links)
	unread := slices.Concat(v.hide, v.veil)
	r := &ruleset{Device: devices, Write: []string{temp}}
	if home != "" {
		r.Write = append(r.Write, home)
	}
	r.Read = around("/", append(unread, "/dev"))
	r.Read = append(r.Read, v.show...)
	r.Read = append(r.Read, around(v.workspace, v.hide)...)
	if v.full {
		r.Write = append(r.Write, around("/", closed)...)
	}
	for _, dir := range v.write {
		r.Write = append(r.Write, around(dir, closed)...)
	}
	for _, path := range v.grant {
		r.Write = append(r.Write, around(path, v.hide)...)
	}
	return r
}

// moved is the environment of a command whose home and temporary directories
// are elsewhere than it is used to: what names something in the old home names
// the same in the new one, unless the old one is still to be seen.
func moved(env []string, v view, temp, home string) []string {
	env = with(env, "TMPDIR="+temp)
	if v.home == "" {
		return env
	}
	for i, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		shown := slices.ContainsFunc(v.show, func(p string) bool { return inside(value, p) })
		if name != "PATH" && inside(value, v.home) && !shown && !inside(value, v.workspace) {
			env[i] = name + "=" + home + value[len(v.home):]
		}
	}
	for variable, name := range map[string]string{"GOMODCACHE": "go/pkg/mod", "RUSTUP_HOME": ".rustup"} {
		if dir := filepath.Join(v.home, name); lookup(env, variable) == "" && slices.Contains(v.show, dir) {
			env = append(env, variable+"="+dir)
		}
	}
	return with(env, "HOME="+home)
}
