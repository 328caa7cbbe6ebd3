package models

import (
	"github.com/pawlrun/pawl/llm"
)

// Config is an owner's information about providers and models, in addition to what this
// version knows. The zero value adds nothing. It must not change once a [Resolver] has
// it.
type Config struct {
	// File is the file that it was read from, empty for none.
	File string
	// Providers are additional providers, and changes to the known ones, by the prefix
	// of a model's name.
	Providers map[string]Provider
	// Models override the table's entries, by "provider/model".
	Models map[string]Override
	// Classes maps capability classes to models.
	Classes map[string]string
	// Roles maps roles that an agent file leaves open to models.
	Roles map[string]string
}

// Provider describes how to reach a provider. Empty fields keep their known values.
type Provider struct {
	BaseURL string
	// APIKeyEnv is the variable that contains the key. If it is empty, a provider that
	// is not known by name is called without a key.
	APIKeyEnv string
	// Headers are added to every request; ${NAME} in a value is a variable.
	Headers map[string]string
	// Proxy is the address of the proxy to use instead of the environment's; ${NAME} in
	// it is a variable.
	Proxy string
	// Profile is the profile of a compatible service.
	Profile string
}

// Override replaces the table's entry of a model. Zero fields keep their values.
type Override struct {
	// ContextWindow and MaxOutput are tokens.
	ContextWindow, MaxOutput int
	Price                    *llm.Price
	// Can lists everything that the model can do beyond text; nil leaves that to the
	// table, and an empty list means nothing.
	Can []string
}

// apply returns the table's entry with an override.
func (o Override) apply(info Info, known bool) Info {
	info.unpriced = !known
	if o.ContextWindow > 0 {
		info.ContextWindow = o.ContextWindow
	}
	if o.MaxOutput > 0 {
		info.MaxOutput = o.MaxOutput
	}
	if o.Can != nil {
		info.Can = o.Can
	}
	if o.Price != nil {
		info.Price, info.unpriced = *o.Price, false
	}
	return info
}
