package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
)

// devices are the files below /dev that commands use like ordinary files.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// rules converts a view to Landlock rules, which can only grant whole trees. So it
// grants everything around what is hidden: in a directory above something hidden,
// commands can list, create, remove and rename nothing. Protected paths are granted,
// because they are usually at the top of the workspace; they are compared before and
// after each command (see [snapshot]).
func (v view) rules(temp, home string) *ruleset {
	unread := slices.Concat(v.hide, v.hidden)
	r := &ruleset{Device: devices, Write: []string{temp}}
	if home != "" {
		r.Write = append(r.Write, home)
	}
	r.Read = around("/", append(unread, "/dev"))
	for _, path := range v.show {
		r.Read = append(r.Read, around(path, v.hide)...)
	}
	r.Read = append(r.Read, around(v.workspace, v.hide)...)
	if v.full {
		r.Write = append(r.Write, around("/", v.hide)...)
	}
	for _, dir := range v.write {
		r.Write = append(r.Write, around(dir, v.hide)...)
	}
	for _, path := range v.grant {
		r.Write = append(r.Write, around(path, v.hide)...)
	}
	return r
}

// lookingOnly sets a variable that stops git from writing to a repository that it only
// reads, because that would count as a change of a protected path.
func lookingOnly(env []string) []string {
	env = with(env, "GIT_OPTIONAL_LOCKS=0")
	if lookup(env, "GIT_CONFIG_COUNT") != "" {
		return env
	}
	return with(env, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=diff.autoRefreshIndex", "GIT_CONFIG_VALUE_0=false")
}

// HiddenWithin returns the hidden paths of the workspace if, in this tier, commands can
// list, create, rename and remove nothing in the directories above them.
func (b *Box) HiddenWithin() ([]string, error) {
	if b.tier != Landlock {
		return nil, nil
	}
	v, err := b.view(nil)
	return slices.DeleteFunc(v.hide, func(path string) bool { return !inside(path, v.workspace) }), err
}

// moved returns the environment of a command with other home and temporary directories:
// a variable with a path in the old home directory gets the same path in the new one,
// unless the old one is visible.
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
	for _, kept := range [][2]string{
		{"GOMODCACHE", "go/pkg/mod"}, {"RUSTUP_HOME", ".rustup"}, {"GIT_CONFIG_GLOBAL", ".gitconfig"}, {"GIT_CONFIG_GLOBAL", ".config/git/config"},
	} {
		if at := filepath.Join(v.home, kept[1]); lookup(env, kept[0]) == "" && slices.Contains(v.show, at) {
			env = append(env, kept[0]+"="+at)
		}
	}
	return with(env, "HOME="+home)
}
