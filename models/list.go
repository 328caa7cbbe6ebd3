package models

import (
	"cmp"
	"maps"
	"slices"
)

// Listed is a model that the table or the config knows.
type Listed struct {
	// Name is "provider/model".
	Name string
	Info Info
	// Unusable is why the model cannot be called, as far as that is known without a
	// call; nil if no reason is known.
	Unusable error
}

// List lists the models of the table and the config, by name, and the date of the
// table.
func (r *Resolver) List() (list []Listed, date string, err error) {
	table, err := r.known()
	if err != nil {
		return nil, "", err
	}
	names := slices.Collect(maps.Keys(table.Models))
	for name := range r.Config.Models {
		if _, tabled := table.Models[name]; !tabled {
			names = append(names, name)
		}
	}
	unusable := map[string]error{}
	for _, name := range names {
		provider := providerOf(name)
		why, checked := unusable[provider]
		if !checked {
			why = r.Check(name)
			unusable[provider] = why
		}
		info, _ := r.Lookup(name)
		list = append(list, Listed{Name: name, Info: info, Unusable: why})
	}
	slices.SortFunc(list, func(a, b Listed) int { return cmp.Compare(a.Name, b.Name) })
	return list, table.Date, nil
}
