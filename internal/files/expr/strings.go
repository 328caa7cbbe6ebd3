package expr

import (
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/ext"
)

// stringsVersion is the version of the string functions (trim, split, replace,
// lowerAscii …): the first whose work counts towards [CostLimit].
const stringsVersion = 5

// functionsOnStrings returns the string functions of the language's extension. The cost
// of a call is counted afterwards, so functions with much larger results than arguments
// are bounded before.
func functionsOnStrings() []cel.EnvOption {
	text := cel.StringType
	replaced := func(args ...ref.Val) ref.Val { return replace(args) }
	return []cel.EnvOption{
		ext.Strings(ext.StringsVersion(stringsVersion)),
		cel.Function("replace",
			cel.MemberOverload("string_replace_string_string", []*cel.Type{text, text, text}, text, cel.FunctionBinding(replaced)),
			cel.MemberOverload("string_replace_string_string_int", []*cel.Type{text, text, text, cel.IntType}, text, cel.FunctionBinding(replaced))),
		cel.Function("join",
			cel.MemberOverload("list_join_string", []*cel.Type{cel.ListType(text), text}, text, cel.BinaryBinding(join))),
		cel.CostModel(copies()...),
	}
}

// copies returns the costs of functions that copy a text: reading it, as for the
// language's own functions, and writing the copy. The extension counts each character
// as a step, so output of a command above 9 KB could not be trimmed.
func copies() []cost.OverloadModel {
	work := cost.Sum(cost.Const(cost.CallCost), cost.StringScan(cost.Length(cost.Target())), cost.StringScan(cost.Length(cost.Result())))
	var models []cost.OverloadModel
	for _, id := range []string{
		"string_trim", "string_lower_ascii", "string_upper_ascii", "string_reverse", "string_substring_int", "string_substring_int_int",
		"string_replace_string_string", "string_replace_string_string_int",
	} {
		models = append(models, cost.MemberOverload(id, cost.EvalCost(work)))
	}
	return models
}

// tooLong is the result of a function whose text would be too long.
func tooLong() ref.Val { return types.NewErr("the text is longer than an expression may make it") }

func replace(args []ref.Val) ref.Val {
	in, old, with := string(args[0].(types.String)), string(args[1].(types.String)), string(args[2].(types.String))
	n := -1
	if len(args) == 4 {
		n = int(args[3].(types.Int))
	}
	times := strings.Count(in, old)
	if n >= 0 {
		times = min(times, n)
	}
	if len(in)+times*len(with) > maxOutput {
		return tooLong()
	}
	return types.String(strings.Replace(in, old, with, n))
}

func join(list, between ref.Val) ref.Val {
	var parts []string
	size, separator := 0, string(between.(types.String))
	for it := list.(traits.Lister).Iterator(); it.HasNext() == types.True; {
		part, ok := it.Next().(types.String)
		if !ok {
			return types.NewErr("join takes a list of texts")
		}
		if size += len(part) + len(separator); size > maxOutput {
			return tooLong()
		}
		parts = append(parts, string(part))
	}
	return types.String(strings.Join(parts, separator))
}
