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

// view describes the file system of a command. All paths exist and are canonical.
type view struct {
	// full reports that everything may be written except what is protected.
	full bool
	// hidden are directories with other contents than outside.
	hidden []string
	// home is the hidden home directory; empty if it is not hidden.
	home string
	// show are read-only files and directories within hidden ones.
	show []string
	// write are the writable paths.
	write []string
	// workspace is readable.
	workspace string
	// protect lists read-only paths, grant paths that are writable again, and hide
	// paths that cannot be read whatever the other lists contain.
	protect, grant, hide []string
	// pin are the directories of the workspace above protected or hidden paths: moving
	// one would move its files away from their patterns.
	pin []string
	// links are protected symbolic links. Nothing can be mounted over a link, so in the
	// directory of one, commands can create, rename and remove nothing.
	links []string
	// absent are protected places that do not exist, and dirs the directories in which
	// only some entries are open, with the names that existed. Nothing can be mounted
	// over a missing path, so what a command creates there is removed.
	absent []string
	dirs   map[string][]string
	// repositories are open Git directories, except their closed parts.
	repositories []string
	// shut are read-only paths within granted ones.
	shut []string
}

// Temporary directories are private, and the others contain sockets of the machine's
// services.
var hiddenDirs = []string{"/tmp", "/var/tmp", "/run"}

// roots lists passwords and keys of the machine that only root can read. Commands run
// by root have no capabilities, but they still own these files.
var roots = []string{
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private", "/etc/pki/tls/private", "/etc/krb5.keytab",
	"/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key", "/etc/NetworkManager/system-connections", "/etc/kubernetes", "/etc/rancher",
}

// openable returns the paths that this process can open.
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

// view computes the view of a command with some grants.
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
	// A hidden path need not be protected.
	v.protect = slices.DeleteFunc(v.protect, func(path string) bool {
		return slices.ContainsFunc(v.hide, func(hidden string) bool { return inside(path, hidden) })
	})
	v.pin = v.above()
	return v, nil
}

// above returns the writable directories between the workspace, or an open repository
// outside it, and the paths that may not be written, the outermost first.
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

// hideDirectories hides the home directory, directories shared by all users, and root's
// own files, but not the workspace within them.
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
		// Resolving names needs a file that is often below /run.
		if conf, ok := resolved("/etc/resolv.conf"); ok && strings.HasPrefix(conf, "/run/") {
			v.show = append(v.show, conf)
		}
	}
}

// Scratch reports whether commands of a tier with this bound on files have private
// directories for temporary files instead of the machine's.
func Scratch(t Tier, f Filesystem) bool { return t.mounts() && f != FilesystemFull }

// InScratch reports whether an absolute path is in such a directory and no existing
// path of the machine is on the way to it, which would become visible to a command that
// may write it.
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
// given by its canonical name. It returns true if that is unknown.
func (b *Box) MayWrite(file string, grants ...Grant) bool {
	v, err := b.view(grants)
	if err != nil {
		return true
	}
	if b.tier == Landlock {
		v.protect, v.links, v.shut = nil, nil, nil // the view only hides
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

// ProtectedLinks returns the protected symbolic links of the workspace, if commands can
// create, rename and remove nothing in their directories.
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
