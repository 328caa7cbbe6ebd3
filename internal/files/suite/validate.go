package suite

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/files/decode"
)

func (s *Suite) validate(r *decode.Report) {
	r.Choices(reflect.ValueOf(s), "")
	if s.Kind == "" {
		decode.Missing(r, "kind", Kind)
	}
	decode.NotEmpty(r, "name", s.Name)
	s.Target.validate(r, "", s)
	named(r, "judge", s.Judge)
	decode.Within(r, "runs", s.Runs, 1, maxRuns)
	decode.Within(r, "threshold", s.Threshold, 0, 1)
	decode.Money(r, "budget", s.Budget)
	decode.Within(r, "concurrency", s.Concurrency, 1, maxConcurrency)
	for i := range s.Evaluators {
		s.Evaluators[i].validate(r, fmt.Sprintf("evaluators[%d]", i), s.Judge != "")
	}
	if len(s.Cases) == 0 {
		decode.Missing(r, "cases", "a list of cases")
	}
	first := map[string]int{}
	for i := range s.Cases {
		path := fmt.Sprintf("cases[%d]", i)
		c := &s.Cases[i]
		if before, twice := first[c.Name]; twice && c.Name != "" {
			r.At(path+".name", "a name of its own", "cases[%d] has the name %q too", before, c.Name)
		}
		first[c.Name] = i
		c.validate(r, path, s)
	}
}

func (c *Case) validate(r *decode.Report, path string, s *Suite) {
	if strings.TrimSpace(c.Name) == "" && !r.Reported(path+".name") {
		decode.Missing(r, path+".name", "a name")
	}
	c.Target.validate(r, path+".", s)
	switch {
	case c.Recorded == "" && s.Of(c).File() == "":
		decode.Missing(r, path+".agent", "an agent or a workflow file, here or at the top, or recorded: RUN")
	case c.Recorded != "" && c.Runs != nil:
		r.At(path+".runs", "no such key", "a recorded run is the same each time")
	}
	decode.Within(r, path+".runs", c.Runs, 1, maxRuns)
	if len(s.EvaluatorsOf(c)) == 0 {
		decode.Missing(r, path+".evaluators", "at least one evaluator, here or at the top")
	}
	for i := range c.Evaluators {
		c.Evaluators[i].validate(r, fmt.Sprintf("%s.evaluators[%d]", path, i), s.Judge != "")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Files.Texts)) {
		if !filepath.IsLocal(name) {
			r.At(decode.Join(path+".files", name), "a name below the directory of the case", "leaves it")
		}
	}
	if c.Files.Dir != "" {
		if info, err := os.Stat(s.Path(c.Files.Dir)); err != nil || !info.IsDir() {
			r.At(path+".files", "a directory, or a mapping from names to texts", "there is no directory %s", c.Files.Dir)
		}
	}
}

// validate checks the file of a target. prefix is the path of what contains it.
func (t Target) validate(r *decode.Report, prefix string, s *Suite) {
	if t.Agent != "" && t.Workflow != "" {
		r.At(prefix+"workflow", "one of agent, workflow", "is given beside agent")
	}
	for key, name := range map[string]string{"agent": t.Agent, "workflow": t.Workflow} {
		if name == "" {
			continue
		}
		if info, err := os.Stat(s.Path(name)); err != nil || info.IsDir() {
			r.At(prefix+key, "an agent or workflow file", "there is no file %s", name)
		}
	}
	named(r, prefix+"model", t.Model)
}

// named checks the form of the name of a model.
func named(r *decode.Report, path, model string) {
	if model != "" && !strings.Contains(model, "/") && !r.Reported(path) {
		r.At(path, "a model as provider/name", "is %q", model)
	}
}
