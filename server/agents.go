package server

import (
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

// listed is an agent file of the directory.
type listed struct {
	Name        string `json:"name"`
	Version     string `json:"version,omitempty"`
	Description string `json:"description,omitempty"`
	File        string `json:"file"`
	// Problem says why the agent cannot be run.
	Problem string `json:"problem,omitempty"`
}

// list reads the names of all agent files, in the order of the files. Files
// that are no agents are left out, and so is what a link outside leads to.
func (d directory) list() ([]listed, error) {
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	agents := []listed{}
	for _, entry := range entries {
		file := entry.Name()
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(file))) {
			continue
		}
		info, err := root.Stat(file)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		heading, ok := spec.ReadHeading(filepath.Join(d.path, file))
		if !ok {
			continue
		}
		if heading.Name == "" {
			heading.Name = strings.TrimSuffix(file, filepath.Ext(file))
		}
		agents = append(agents, listed{Name: heading.Name, Version: heading.Version, Description: heading.Description, File: file})
	}
	return agents, nil
}

// find returns the path of the one agent of a name.
func (d directory) find(name string) (string, error) {
	agents, err := d.list()
	if err != nil {
		return "", kindUnavailable.problem("start the server with another --agents", "the agents directory cannot be read: %v", err)
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
		return kindUnavailable.problem("start the server with another --agents", "the agents directory cannot be read: %v", err)
	}
	slices.SortFunc(agents, func(a, b listed) int { return strings.Compare(a.File, b.File) })
	if q.cursor != "" {
		last := slices.IndexFunc(agents, func(a listed) bool { return a.File == q.cursor })
		if last < 0 {
			return noSuchPlace("agent's file", q.cursor)
		}
		agents = agents[last+1:]
	}
	page := list[listed]{Items: agents[:min(len(agents), q.limit)]}
	if len(agents) > q.limit {
		page.Next = page.Items[q.limit-1].File
	}
	for i := range page.Items {
		if _, err := launch.Check(filepath.Join(s.agents.path, page.Items[i].File), s.launch); err != nil {
			page.Items[i].Problem = err.Error()
		}
	}
	s.answer(w, r, http.StatusOK, page)
	return nil
}
