package tool

import (
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxSteps bounds how many schemas within a schema a value is held against, beside
// one for each of its bytes. Where alternatives hold alternatives each level
// multiplies them: a few hundred bytes would take hours and all memory.
const maxSteps = 100_000

// effort counts the steps of a validation: it is a keyword that all schemas have.
type effort struct{ steps, most int }

func (e *effort) begin(size int) { e.steps, e.most = 0, maxSteps+size }

// Validate counts one more, and more of what lies deep: each violation has a copy
// of its place. There is no other way out of a validation than a panic.
func (e *effort) Validate(ctx *jsonschema.ValidatorContext, _ any) {
	if e.steps += 1 + len(ctx.ValueLocation())/8; e.steps > e.most {
		panic(fmt.Sprintf("it takes more than %d checks, because alternatives are nested in it too deep", e.most))
	}
}

// count has a compiler give the keyword to each schema.
func (e *effort) count(c *jsonschema.Compiler) {
	c.RegisterVocabulary(&jsonschema.Vocabulary{
		URL:     "mem:///effort",
		Compile: func(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) { return e, nil },
	})
	c.AssertVocabs()
}
