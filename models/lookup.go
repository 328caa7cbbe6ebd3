package models

import (
	"cmp"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/host/egress"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
	"github.com/pawlrun/pawl/llm/openaichat"
)

// Lookup returns the information about a target from the config, or else from the
// table; see [Table.Lookup].
func (r *Resolver) Lookup(target string) (Info, bool) {
	info, known := r.tabled(target)
	override, given := r.Config.Models[target]
	if !given {
		return info, known
	}
	return override.apply(info, known), true
}

// Can reports whether a model has an ability, and whether that is known at all. It is
// unknown for local models, and for those in neither the table nor the config. A
// missing schema ability in the table also means unknown, because the table lists it
// only for some providers.
func (r *Resolver) Can(target, ability string) (can, known bool) {
	info, listed := r.Lookup(target)
	can = slices.Contains(info.Can, ability)
	switch override := r.Config.Models[target]; {
	case can || override.Can != nil:
		return can, true
	case !listed || local(target) || ability == CanSchema:
		return false, false
	}
	_, tabled := r.tabled(target)
	return false, tabled
}

// tabled returns the table's entry of a target.
func (r *Resolver) tabled(target string) (Info, bool) {
	table, err := r.known()
	if err != nil {
		return Info{}, false
	}
	name := r.pricedAs(target)
	info, ok := table.Lookup(name)
	if ok {
		info.Can = withSchema(name, info.Can)
	}
	return info, ok
}

// known returns the table, which is read once.
func (r *Resolver) known() (*Table, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.table == nil {
		read := r.Known
		if read == nil {
			read = Known
		}
		t, err := read()
		if err != nil {
			return nil, err
		}
		r.table = &t
	}
	return r.table, nil
}

// withSchema adds the schema ability if the model's wire knows it, because the table
// lists it for no model of Anthropic's.
func withSchema(name string, can []string) []string {
	model, ours := strings.CutPrefix(name, "anthropic/")
	if !ours || slices.Contains(can, CanSchema) || !anthropic.AnswersBySchema(model) {
		return can
	}
	return append(can[:len(can):len(can)], CanSchema)
}

// Price returns the price of a target, or nil if it is unknown.
func (r *Resolver) Price(target string) *llm.Price {
	if info, ok := r.Lookup(target); ok && info.Priced() {
		return &info.Price
	}
	return nil
}

// pricedAs returns the name of a target in the price table. The price of a
// compatible service is known only by its address; a program that users normally
// run themselves has no known price if another party runs it.
func (r *Resolver) pricedAs(target string) string {
	provider, name, _ := strings.Cut(target, "/")
	s, ok := r.service(provider)
	if !ok || !s.custom && !s.local && !s.elsewhere {
		return target
	}
	address := cmp.Or(s.baseURL, openaichat.DefaultBaseURL)
	near := ownNetwork(address)
	if s.local && near {
		return target
	}
	as := openaichat.ProfileFor(address).Name
	if services[as].local && !near {
		as = "" // the service of another party, with an unknown price
	}
	return as + "/" + name
}

// ownNames are the endings of names that are only used in private networks: those
// reserved for them, those never assigned (RFC 6762, appendix G), and those of clusters
// and overlay networks.
var ownNames = [...]string{
	".localhost", ".local", ".internal", ".home.arpa", ".intranet", ".private", ".corp", ".home", ".lan", ".svc", ".ts.net",
}

// ownNetwork reports whether an address is known to be on this machine or in a private
// network.
func ownNetwork(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if a, err := netip.ParseAddr(host); err == nil {
		return egress.Classify(a) != egress.Public
	}
	return host != "" && !strings.Contains(host, ".") || slices.ContainsFunc(ownNames[:], func(end string) bool { return strings.HasSuffix(host, end) })
}

// local reports whether a target runs on this machine, or calls no provider.
func local(target string) bool {
	provider := providerOf(target)
	return BuiltIn(provider) || services[provider].local
}

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

// Named returns the model with a name such as "anthropic/claude-sonnet-4-5", with its
// price. The key and the address come from the variables that the provider's own SDK
// reads (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, OLLAMA_HOST and so on). The
// error wraps [ErrNoKey] if the key is not set, and [llm.ErrUnknownModel] if the
// provider does not exist or the name is misspelled ([NearNameError]).
func Named(name string) (llm.Target, error) { return new(Resolver).Target(name) }

// Target is [Named] with this resolver's settings instead of the environment.
func (r *Resolver) Target(name string) (llm.Target, error) {
	client, _, err := r.Open(name)
	if err == nil {
		err = r.CheckName(name)
	}
	if err != nil {
		return llm.Target{}, err
	}
	return llm.Target{Name: name, Client: client, Price: r.Price(name)}, nil
}
