package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/host/egress"
)

// view is what a command finds of the file system. All paths exist and are
// their own names.
type view struct {
	// full: everything may be written but what is protected.
	full bool
	// hidden are directories that hold other things than outside.
	hidden []string
	// home is the hidden home directory; empty where it is not hidden.
	home string
	// show are read-only files and directories below them.
	show []string
	// write are what may be written.
	write []string
	// workspace may be read.
	workspace string
	// protect lists read-only paths, grant paths that are writable again, and hide
	// paths that cannot be read whatever the other lists contain.
	protect, grant, hide []string
	// pin are the directories of the workspace above what is protected or hidden:
	// one that was moved would take its files from under their patterns.
	pin []string
	// links are protected symbolic links. Nothing can be laid over one, so where
	// one is, no entry of its directory can be made, renamed or removed.
	links []string
	// absent are protected places where nothing is, and dirs the directories that are
	// open for some entries alone, with the names that were there: what a command
	// makes in either is taken away. Nothing can be laid over what is not there.
	absent []string
	dirs   map[string][]string
	// repositories are git's directories that are open, but for what is shut.
	repositories []string
	// shut is read-only although what it lies in is granted.
	shut []string
}

// temporary directories are private, and sockets of the machine's services lie
// in the others.
var hiddenDirs = []string{"/tmp", "/var/tmp", "/run"}

// roots lists passwords and keys of the machine that only root can read. Commands
// run by root have no capabilities, but they still own these files.
var roots = []string{
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private", "/etc/pki/tls/private", "/etc/krb5.keytab",
	"/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key", "/etc/NetworkManager/system-connections", "/etc/kubernetes", "/etc/rancher",
}

// openable are those of some paths that this process can open.
func openable(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		f, err := os.Open(path)
		if err != nil {
			return true
		}
		f.Close()
		return false
	})
}

// view works out what a command with some grants finds.
func (b *Box) view(grants []Grant) (view, error) {
	p := b.policy
	grants = b.granted(grants)
	v := view{full: p.Filesystem == FilesystemFull, workspace: p.Workspace, hide: existing(p.Hidden)}
	if !v.full {
		b.hideDirectories(&v)
	}
	v.show = append(v.show, existing(p.Readable)...)
	if p.Filesystem != FilesystemReadOnly {
		v.write = append(v.write, p.Workspace)
		var err error
		if v.protect, v.links, err = protected(p.Workspace, p.Protected); err != nil {
			return view{}, err
		}
		v.absent = missing(p.Workspace, p.Protected)
	}
	protect, hide, err := b.links.find(p.Workspace, v.protect, v.hide)
	if err != nil {
		return view{}, err
	}
	v.protect, v.hide = append(v.protect, protect...), append(v.hide, hide...)
	if err := v.allowAll(grants); err != nil {
		return view{}, err
	}
	v.hide = outermost(v.hide)
	// What is hidden whole need not be protected as well.
	v.protect = slices.DeleteFunc(v.protect, func(path string) bool {
		return slices.ContainsFunc(v.hide, func(hidden string) bool { return inside(path, hidden) })
	})
	v.pin = v.above()
	return v, nil
}

// above are the directories that may be written on the way from the workspace, or an
// open repository outside it, to what may not, the outermost first.
func (v *view) above() []string {
	var dirs []string
	add := func(path string) {
		for dir := filepath.Dir(path); !slices.Contains(v.write, dir) && v.writable(dir); dir = filepath.Dir(dir) {
			if !v.guarded(dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	for _, path := range slices.Concat(v.protect, v.links, v.hide, v.absent, v.shut) {
		add(path)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// hideDirectories hides the home directory, everybody's directories and root's own files,
// but not the workspace with them.
func (b *Box) hideDirectories(v *view) {
	for _, path := range existing(openable(roots)) {
		if !inside(v.workspace, path) {
			v.hide = append(v.hide, path)
		}
	}
	v.hidden = existing(hiddenDirs)
	v.hidden = slices.Compact(v.hidden)
	home := homeOf(b.policy.Environment)
	switch {
	case home == "":
	case inside(home, v.workspace):
		for _, name := range secrets {
			v.hide = append(v.hide, existing([]string{home + "/" + name})...)
		}
	default:
		v.home = home
		v.hidden = append(v.hidden, home)
		v.show = installed(home, b.policy.Environment, b.policy.Egress.Network)
	}
	if b.policy.Egress.Network == egress.NetworkHost {
		// Names are looked up with a file that is often below /run.
		if conf, ok := resolved("/etc/resolv.conf"); ok && strings.HasPrefix(conf, "/run/") {
			v.show = append(v.show, conf)
		}
	}
}

// Scratch reports whether commands of a tier with a bound on files have directories of
// their own for temporary files, in the place of the machine's.
func Scratch(t Tier, f Filesystem) bool { return t.mounts() && f != FilesystemFull }

// InScratch reports whether an absolute path lies in such a directory, and nothing of
// the machine's lies there on the way to it: that would be shown to a command which was
// permitted to write it.
func InScratch(path string) bool {
	for _, dir := range []string{"/tmp", "/var/tmp"} {
		if below, ok := strings.CutPrefix(path, dir+"/"); ok {
			top, _, _ := strings.Cut(below, "/")
			_, err := os.Lstat(filepath.Join(dir, top))
			return errors.Is(err, fs.ErrNotExist)
		}
	}
	return false
}

// MayWrite reports whether a command with some grants may write or replace a file,
// which is given by its own name, or that it is not known.
func (b *Box) MayWrite(file string, grants ...Grant) bool {
	v, err := b.view(grants)
	if err != nil {
		return true
	}
	if b.tier == Landlock {
		v.protect, v.links, v.shut = nil, nil, nil // which only hides
	}
	under := func(dirs ...string) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool { return inside(file, dir) })
	}
	switch {
	case under(v.hide...), under(v.shut...), slices.Contains(v.links, file):
		return false
	case under(v.grant...), under(b.temp, b.home):
		return true
	}
	return (v.full || under(v.write...)) && !under(v.protect...)
}

// ProtectedLinks are the symbolic links of the workspace that are protected, where
// in the directory of each commands can make, rename and remove nothing.
func (b *Box) ProtectedLinks() ([]string, error) {
	if b.policy.Filesystem == FilesystemReadOnly || b.tier == Landlock {
		return nil, nil
	}
	_, links, err := protected(b.policy.Workspace, b.policy.Protected)
	return links, err
}

func (v *view) guarded(path string) bool {
	return slices.ContainsFunc(v.protect, func(protected string) bool { return inside(path, protected) })
}
