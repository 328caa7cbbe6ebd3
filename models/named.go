package models

import "github.com/pawlrun/pawl/llm"

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
