package server

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/machine/agent"
)

// directory holds the files that can be run by name. A name is compared with the
// names of the files and never becomes a path.
//
// A changed file is read again; if its version changed too, the old text is kept.
// Whether a file can run is checked again after any change in the directory, and
// periodically, because files may refer to files elsewhere.
type directory struct {
	mu sync.Mutex
	// path is the directory, or the newest published set of files.
	path  string
	files map[string]*known
	// older holds replaced texts by the key of the file's family, the name and the
	// version.
	older map[[3]string]kinds.File
}

// publish offers the files of published sets, the newest first, in place of those of the
// directory. Versions that only earlier sets have are kept.
func (d *directory) publish(sets []string) error {
	older := map[[3]string]kinds.File{}
	for i := len(sets) - 1; i >= 0; i-- {
		set := directory{path: sets[i], files: map[string]*known{}, older: map[[3]string]kinds.File{}}
		if _, err := set.scan(); err != nil {
			return err
		}
		for file, k := range set.files {
			if k.kind != "" && k.heading.Version != "" {
				older[[3]string{k.family(), k.name(file), k.heading.Version}] = kinds.Kept(filepath.Join(sets[i], file), k.text)
			}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.path, d.files, d.older = sets[0], map[string]*known{}, older
	return nil
}

// known is the content of a file when it was last read.
type known struct {
	os.FileInfo
	heading spec.Heading
	kind    string
	text    []byte
	// unreadable is why the file has no kind.
	unreadable string
	// problem is the result of the last check, at a time and for a listing of the
	// directory.
	problem string
	listing string
	at      time.Time
}

// runnable is a file of the directory that can run, or could without its errors.
type runnable struct {
	Name        string `json:"name"`
	Kind        string `json:"kind,omitempty"`
	Version     string `json:"version,omitempty"`
	Description string `json:"description,omitempty"`
	File        string `json:"file"`
	// Older lists earlier versions of the file that can still run.
	Older []string `json:"older,omitempty"`
	// Problem is why the file cannot run.
	Problem string `json:"problem,omitempty"`
}

// family is a set of files that one path lists and one key of a body names.
type family struct{ key, path string }

// families returns the two families: agent files, including teams and loops, and
// all others.
func families() (agents, workflows family) {
	return family{"agent", "/v1/agents"}, family{"workflow", "/v1/workflows"}
}

// family returns the key of the file's family, "" for none.
func (k *known) family() string {
	agents, workflows := families()
	switch h := k.heading; {
	case k.kind == "":
		return ""
	case !h.Keys["steps"] && (h.Kind == "" || h.Kind == agent.Kind):
		return agents.key
	}
	return workflows.key
}

// fresh is how long a check that a file can run stays valid.
const fresh = 5 * time.Second

// settled is how long after a change another change may not show in a file's time.
const settled = 2 * time.Second

// list returns the files of a family, sorted, without checking whether they can
// run. A file that is not YAML belongs to every family. Other files without a kind
// and links to files outside are left out. An error is a [*Problem].
func (d *directory) list(f family) ([]runnable, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, err := d.scan()
	if err != nil {
		return nil, err
	}
	all := []runnable{}
	for file, k := range d.files {
		if k.family() != f.key && k.unreadable == "" {
			continue
		}
		all = append(all, runnable{
			Name: k.name(file), Kind: k.kind, Version: k.heading.Version, Description: k.heading.Description, File: file,
			Older: d.olderThan(k, file), Problem: k.unreadable,
		})
	}
	slices.SortFunc(all, func(a, b runnable) int { return cmp.Compare(a.File, b.File) })
	return all, nil
}

func (k *known) name(file string) string {
	return cmp.Or(k.heading.Name, strings.TrimSuffix(file, filepath.Ext(file)))
}

// olderThan returns the earlier versions of a file.
func (d *directory) olderThan(k *known, file string) (versions []string) {
	for is := range d.older {
		if is[0] == k.family() && is[1] == k.name(file) && is[2] != k.heading.Version {
			versions = append(versions, is[2])
		}
	}
	slices.Sort(versions)
	return versions
}

// scan reads changed files, and returns a text that differs after any change in the
// directory.
func (d *directory) scan() (listing string, err error) {
	root, entries, err := d.open()
	if err != nil {
		return "", kindUnavailable.problem("start the server with another --agents", "the agents directory cannot be read: %v", err)
	}
	defer root.Close()
	there := map[string]bool{}
	var stamps strings.Builder
	for _, entry := range entries {
		file := entry.Name()
		info, err := root.Stat(file)
		if err != nil {
			continue
		}
		stamps.WriteString(file + " " + info.ModTime().String() + "\n")
		if !isAgentFile(file) || !info.Mode().IsRegular() {
			continue
		}
		there[file] = true
		if before := d.files[file]; before == nil || before.Size() != info.Size() || !before.ModTime().Equal(info.ModTime()) || time.Since(info.ModTime()) < settled {
			d.read(file, info)
		}
	}
	for file := range d.files {
		if !there[file] {
			delete(d.files, file)
		}
	}
	return stamps.String(), nil
}

// read updates the known content of a file if it has changed.
func (d *directory) read(file string, info os.FileInfo) {
	path := filepath.Join(d.path, file)
	text, err := spec.ReadFile(path)
	if before := d.files[file]; before != nil && err == nil && before.unreadable == "" && bytes.Equal(before.text, text) {
		before.FileInfo = info
		return
	}
	k := &known{FileInfo: info, text: text}
	if err == nil {
		k.heading, err = spec.ReadHeading(text)
	}
	if err != nil {
		k.unreadable = control.Plain(err)
	} else if of, is := kinds.Recognise(k.heading); is {
		k.kind = of.Name
	}
	if before := d.files[file]; before != nil && before.kind != "" && before.heading.Version != "" && before.heading.Version != k.heading.Version {
		d.older[[3]string{before.family(), before.name(file), before.heading.Version}] = kinds.Kept(path, before.text)
	}
	d.files[file] = k
}

// open opens the directory and lists it, sorted by name.
func (d *directory) open() (*os.Root, []os.DirEntry, error) {
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return nil, nil, err
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, nil, errors.Join(err, root.Close())
	}
	return root, entries, nil
}

func isAgentFile(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(name)))
}

// check returns why a file cannot run, or "".
func (d *directory) check(file string, o launch.Options) (problem string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	listing, err := d.scan()
	k := d.files[file]
	switch {
	case err != nil:
		return err.Error()
	case k == nil:
		return "the file is gone"
	case k.unreadable != "":
		return k.unreadable
	case k.listing == listing && time.Since(k.at) < fresh:
		return k.problem
	}
	k.problem, k.listing, k.at = "", listing, time.Now()
	f, err := kinds.Read(filepath.Join(d.path, file))
	if err == nil {
		_, err = f.Check(o)
	}
	if err != nil {
		k.problem = err.Error()
	}
	return k.problem
}

// find returns the file with a name, or an earlier version for name@version.
func (d *directory) find(f family, name string) (kinds.File, error) {
	all, err := d.list(f)
	if err != nil {
		return kinds.File{}, err
	}
	d.mu.Lock()
	path := d.path
	d.mu.Unlock()
	bare, version, versioned := strings.Cut(name, "@")
	var files []string
	for _, a := range all {
		if a.Name == name || versioned && a.Name == bare && a.Version == version {
			files = append(files, a.File)
		}
	}
	if len(files) == 1 {
		return kinds.Read(filepath.Join(path, files[0]))
	}
	if len(files) > 1 {
		return kinds.File{}, kindAgent.problem("give them different names, or add the version: NAME@VERSION", "several files call themselves %q: %s", name, strings.Join(files, ", ")).at("/" + f.key)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if kept, is := d.older[[3]string{f.key, bare, version}]; is {
		return kept, nil
	}
	return kinds.File{}, kindAgent.problem("name one of those at "+f.path, "there is no %s %q", f.key, name).at("/" + f.key)
}

func (s *Server) listAgents(a *apiRequest[paging, none]) (list[runnable], error) {
	agents, _ := families()
	return s.listFiles(agents, a.query)
}

func (s *Server) listWorkflows(a *apiRequest[paging, none]) (list[runnable], error) {
	_, workflows := families()
	return s.listFiles(workflows, a.query)
}

// listFiles lists the files of a family and whether each can run.
func (s *Server) listFiles(f family, q paging) (list[runnable], error) {
	all, err := s.files.list(f)
	if err != nil {
		return list[runnable]{}, err
	}
	page, err := pageIn(f.key+"s", f.key+"'s file", all, q, func(r runnable) string { return r.File })
	for i := range page.Items {
		page.Items[i].Problem = s.files.check(page.Items[i].File, s.launch)
	}
	return page, err
}
