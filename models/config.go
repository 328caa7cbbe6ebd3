package models

import (
	"github.com/pawlrun/pawl/llm"
)

// Config is what an owner says of providers and models beyond what this
// version knows of itself. The zero value adds nothing. It is not changed once
// a [Resolver] has it.
type Config struct {
	// File is where that was read, empty where it was in none.
	File string
	// Providers are further providers, and changes to the known ones, by the
	// prefix of a model's name.
	Providers map[string]Provider
	// Models replace what the table knows of a model, by "provider/model".
	Models map[string]Override
	// Classes are the models that capability classes stand for.
	Classes map[string]string
	// Roles are the models of the roles that an agent file leaves open.
	Roles map[string]string
}

// Provider is how a provider is reached. What is empty stays as it is known.
type Provider struct {
	BaseURL string
	// APIKeyEnv is the variable that holds the key. A provider that is not
	// known by name is called without a key when it is empty.
	APIKeyEnv string
	// Headers are added to every request; ${NAME} in a value is a variable.
	Headers map[string]string
	// Proxy is the address of the proxy to use in place of the environment's;
	// ${NAME} in it is a variable.
	Proxy string
	// Profile names the habits of a compatible service.
	Profile string
}

// Override replaces what the table knows of a model. What is zero stays.
type Override struct {
	// ContextWindow and MaxOutput are tokens.
	ContextWindow, MaxOutput int
	Price                    *llm.Price
	// Can lists what the model can do beyond text, all of it; nil leaves that
	// to the table, and an empty list means nothing.
	Can []string
}

// apply lays an override over what the table knows.
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
