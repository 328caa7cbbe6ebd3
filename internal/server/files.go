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

// directory is where the files are that can be run by name. A name is looked
// for among those that the files have, and is never made a path.
//
// A file is read again when it has changed, and kept as it was where its version
// has changed, too. Whether it can be run is looked at again when anything in the
// directory has changed, and every now and then: it may name files elsewhere.
type directory struct {
	path string

	mu    sync.Mutex
	files map[string]*known
	// older are texts that were replaced, by the key of the file's family, the name
	// and the version.
	older map[[3]string]kinds.File
}

// known is what a file said when it was read last.
type known struct {
	os.FileInfo
	heading spec.Heading
	kind    string
	text    []byte
	// unreadable is why it is of no kind.
	unreadable string
	// problem was found at a time, when the directory was as listing says.
	problem string
	listing string
	at      time.Time
}

// runnable is a file of the directory that can be run, or could if it were right.
type runnable struct {
	Name        string `json:"name"`
	Kind        string `json:"kind,omitempty"`
	Version     string `json:"version,omitempty"`
	Description string `json:"description,omitempty"`
	File        string `json:"file"`
	// Older are versions that the file had before, and that can still be run.
	Older []string `json:"older,omitempty"`
	// Problem says why the file cannot be run.
	Problem string `json:"problem,omitempty"`
}

// family are the files that a path lists, and a key of a body names.
type family struct{ key, path string }

// families are the agent files, also those of teams and of loops, and all others.
func families() (agents, workflows family) {
	return family{"agent", "/v1/agents"}, family{"workflow", "/v1/workflows"}
}

// family is the key of the family that a file is of, "" for none.
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

// fresh is how long it is believed that a file can be run.
const fresh = 5 * time.Second

// settled is how long after a change another one may not show in a file's time.
const settled = 2 * time.Second

// list gives the files of a family, in their order, without whether they can be run.
// A file that is no YAML may be of any family; others of no kind are left out, and so
// is what a link outside leads to. An error is a [*Problem].
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

// olderThan are the versions that a file had before.
func (d *directory) olderThan(k *known, file string) (versions []string) {
	for is := range d.older {
		if is[0] == k.family() && is[1] == k.name(file) && is[2] != k.heading.Version {
			versions = append(versions, is[2])
		}
	}
	slices.Sort(versions)
	return versions
}

// scan reads what has changed, and returns a text that is another one whenever
// anything has.
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

// read takes in what a file says now, if that is not what it said.
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

// open opens the directory and lists it, in the order of its names.
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

// check says why a file cannot be run, or nothing.
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

// find returns the one file of a name, or of name@version, as it is or was.
func (d *directory) find(f family, name string) (kinds.File, error) {
	all, err := d.list(f)
	if err != nil {
		return kinds.File{}, err
	}
	bare, version, versioned := strings.Cut(name, "@")
	var files []string
	for _, a := range all {
		if a.Name == name || versioned && a.Name == bare && a.Version == version {
			files = append(files, a.File)
		}
	}
	if len(files) == 1 {
		return kinds.Read(filepath.Join(d.path, files[0]))
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

func (s *Server) listAgents(a *asked[paging, none]) (list[runnable], error) {
	agents, _ := families()
	return s.listFiles(agents, a.query)
}

func (s *Server) listWorkflows(a *asked[paging, none]) (list[runnable], error) {
	_, workflows := families()
	return s.listFiles(workflows, a.query)
}

// listFiles tells of every file of a family whether it can be run.
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
