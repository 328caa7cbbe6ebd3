// Package cel evaluates the expressions of workflows, which are those of
// workflow files. A program that uses none does not compile the language.
package cel

import "github.com/pawlrun/pawl/internal/files/expr"

// An Evaluator evaluates expressions. Its Evaluate method is what the field
// Expressions of a pawl.Workflow takes. It is safe for concurrent use.
type Evaluator = expr.Evaluator

// New returns an evaluator. It costs nothing before its first use.
func New() *Evaluator { return expr.New() }
