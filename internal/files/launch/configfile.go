package launch

import (
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/openaichat"
	"github.com/pawlrun/pawl/models"
)

// ReadConfig reads a config file. The error is [spec.Errors] when the file is
// there and wrong.
func ReadConfig(path string) (models.Config, error) {
	file, err := spec.ReadConfig(path, spec.ConfigOptions{
		Providers: models.KnownProviders(), Profiles: openaichat.ProfileNames(), Abilities: models.Abilities(),
	})
	if err != nil {
		return models.Config{}, err
	}
	c := models.Config{
		File:    absolute(path),
		Classes: file.Classes, Roles: map[string]string{},
		Providers: map[string]models.Provider{}, Models: map[string]models.Override{},
	}
	for name, p := range file.Providers {
		c.Providers[name] = models.Provider(p)
	}
	for name, m := range file.Models {
		c.Models[name] = models.Override{
			ContextWindow: value(m.ContextWindow), MaxOutput: value(m.MaxOutput), Price: price(m.Price), Can: m.Can,
		}
	}
	for role, model := range map[string]string{
		"architect": file.Roles.Architect, "editor": file.Roles.Editor, "subagent": file.Roles.Subagent,
	} {
		if model != "" {
			c.Roles[role] = model
		}
	}
	return c, nil
}

func price(p *spec.ConfigPrice) *llm.Price {
	if p == nil {
		return nil
	}
	full := llm.Price{Input: *p.Input, Output: *p.Output, CacheRead: *p.Input, CacheWrite: *p.Input}
	if p.CacheRead != nil {
		full.CacheRead = *p.CacheRead
	}
	if p.CacheWrite != nil {
		full.CacheWrite = *p.CacheWrite
	}
	return &full
}
