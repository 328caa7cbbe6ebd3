package server

import (
	"cmp"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/launch"
	"github.com/pawlrun/pawl/spec"
)

// directory is where the agents are that can be run by name. A name is looked
// for among those that the files have, and is never made a path.
type directory struct{ path string }

// agentFile is an agent file of the directory.
type agentFile struct {
	Name        string `json:"name"`
	Version     string `json:"version,omitempty"`
	Description string `json:"description,omitempty"`
	File        string `json:"file"`
	// Problem says why the agent cannot be run.
	Problem string `json:"problem,omitempty"`
}

// list reads the names of all agent files, in the order of the files. Files
// that are no agents are left out, and so is what a link outside leads to. An
// error is a [*Problem].
func (d directory) list() ([]agentFile, error) {
	root, entries, err := d.open()
	if err != nil {
		return nil, kindUnavailable.problem("start the server with another --agents", "the agents directory cannot be read: %v", err)
	}
	defer root.Close()
	agents := []agentFile{}
	for _, entry := range entries {
		file := entry.Name()
		info, err := root.Stat(file)
		if !isAgentFile(file) || err != nil || !info.Mode().IsRegular() {
			continue
		}
		heading, ok := spec.ReadHeading(filepath.Join(d.path, file))
		if !ok {
			continue
		}
		name := cmp.Or(heading.Name, strings.TrimSuffix(file, filepath.Ext(file)))
		agents = append(agents, agentFile{Name: name, Version: heading.Version, Description: heading.Description, File: file})
	}
	return agents, nil
}

// open opens the directory and lists it, in the order of its names.
func (d directory) open() (*os.Root, []os.DirEntry, error) {
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

// find returns the path of the one agent of a name.
func (d directory) find(name string) (string, error) {
	agents, err := d.list()
	if err != nil {
		return "", err
	}
	var files []string
	for _, a := range agents {
		if a.Name == name {
			files = append(files, a.File)
		}
	}
	switch len(files) {
	case 1:
		return filepath.Join(d.path, files[0]), nil
	case 0:
		return "", kindAgent.problem("name one of the agents at /v1/agents", "there is no agent %q", name).at("/agent")
	}
	return "", kindAgent.problem("give them different names", "several files call themselves %q: %s", name, strings.Join(files, ", ")).at("/agent")
}

// listAgents tells of every agent of the directory whether it can be run.
func (s *Server) listAgents(w http.ResponseWriter, r *http.Request) error {
	q, err := readQuery(r)
	if err != nil {
		return err
	}
	agents, err := s.agents.list()
	if err != nil {
		return err
	}
	if q.cursor != "" {
		last := slices.IndexFunc(agents, func(a agentFile) bool { return a.File == q.cursor })
		if last < 0 {
			return noSuchPlace("agent's file", q.cursor)
		}
		agents = agents[last+1:]
	}
	page := pageOf(agents, q.limit, func(a agentFile) string { return a.File })
	for i := range page.Items {
		if _, err := launch.Check(filepath.Join(s.agents.path, page.Items[i].File), s.launch); err != nil {
			page.Items[i].Problem = err.Error()
		}
	}
	s.answer(w, r, http.StatusOK, page)
	return nil
}
