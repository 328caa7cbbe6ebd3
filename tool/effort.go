package tool

import (
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxSteps bounds the number of subschemas that a value is validated against, in
// addition to one for each of its bytes. Nested alternatives multiply: a few hundred
// bytes could take hours and all memory.
const maxSteps = 100_000

// effort counts the steps of a validation. It is a keyword that every schema gets.
type effort struct{ steps, most int }

func (e *effort) begin(size int) { e.steps, e.most = 0, maxSteps+size }

// Validate counts a step, and more steps at greater depth, because each violation
// copies its path. It panics at the limit, because a validation cannot be stopped
// otherwise.
func (e *effort) Validate(ctx *jsonschema.ValidatorContext, _ any) {
	if e.steps += 1 + len(ctx.ValueLocation())/8; e.steps > e.most {
		panic(fmt.Sprintf("it takes more than %d checks, because alternatives are nested in it too deep", e.most))
	}
}

// count makes a compiler add the keyword to each schema.
func (e *effort) count(c *jsonschema.Compiler) {
	c.RegisterVocabulary(&jsonschema.Vocabulary{
		URL:     "mem:///effort",
		Compile: func(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) { return e, nil },
	})
	c.AssertVocabs()
}
