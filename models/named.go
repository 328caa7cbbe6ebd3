package models

import "github.com/pawlrun/pawl/llm"

// Named returns the model of a name such as "anthropic/claude-sonnet-4-5", with its
// price. The key and the address come from the variables that the provider's own SDK
// reads (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, OLLAMA_HOST and so on).
// The error wraps [ErrNoKey] where the key is not set, and [llm.ErrUnknownModel]
// where there is no such provider or the name is a slip ([NearNameError]).
func Named(name string) (llm.Target, error) { return new(Resolver).Target(name) }

// Target is [Named] with what this resolver has in the environment's place.
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
