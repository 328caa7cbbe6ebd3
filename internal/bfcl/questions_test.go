package bfcl

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// question is one line of the leaderboard's data.
type question struct {
	ID       string `json:"id"`
	Question [][]struct {
		Content string `json:"content"`
	} `json:"question"`
	Function []struct {
		Name        string         `json:"name"`
		Description string         `json:"description"`
		Parameters  map[string]any `json:"parameters"`
	} `json:"function"`
	// Truth are the right calls: for every argument the values that count.
	Truth []map[string]map[string][]any `json:"ground_truth"`
}

// call is one right call.
type call struct {
	name string
	args map[string]any
}

// load reads a file of questions with its answers, where it has them.
func load(t *testing.T, name string) []question {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "fixtures", "bfcl")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no fixtures: %s is not there", dir)
	}
	questions := lines(t, filepath.Join(dir, "BFCL_v4_"+name+".json"))
	answers := filepath.Join(dir, "possible_answer", "BFCL_v4_"+name+".json")
	if _, err := os.Stat(answers); err != nil {
		return questions
	}
	truth := map[string]question{}
	for _, q := range lines(t, answers) {
		truth[q.ID] = q
	}
	for i := range questions {
		questions[i].Truth = truth[questions[i].ID].Truth
	}
	return questions
}

func lines(t *testing.T, path string) []question {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []question
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var q question
		if err := json.Unmarshal(sc.Bytes(), &q); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out = append(out, q)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// rightCalls picks one right call for each that the question asks for: the
// first value that counts, and no argument that may be left out.
func (q *question) rightCalls() []call {
	var out []call
	for _, truth := range q.Truth {
		for name, args := range truth {
			c := call{name: name, args: map[string]any{}}
			for arg, values := range args {
				if v, given := pick(values); given {
					c.args[arg] = v
				}
			}
			out = append(out, c)
		}
	}
	return out
}

// pick takes the first value that counts. An empty text among the values says
// that the argument may be left out.
func pick(values []any) (any, bool) {
	for _, v := range values {
		if v != "" {
			return settle(v), true
		}
	}
	return nil, false
}

// settle resolves the choices inside a value: objects list the values of each
// of their members.
func settle(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			if choices, ok := x.([]any); ok {
				if picked, given := pick(choices); given {
					out[k] = picked
				}
				continue
			}
			out[k] = x
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = settle(x)
		}
		return out
	}
	return v
}

// jsonSchema maps the data's Python-flavoured type names.
func jsonSchema(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			name, isText := x.(string)
			switch {
			case k == "type" && isText && name == "any":
			case k == "type" && isText:
				out[k] = typeName(name)
			case k == "properties":
				out[k] = properties(x)
			default:
				out[k] = jsonSchema(x)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = jsonSchema(x)
		}
		return out
	}
	return v
}

// properties are named by the author, so that one may be called "type".
func properties(v any) any {
	members, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for name, schema := range members {
		out[name] = jsonSchema(schema)
	}
	return out
}

func typeName(python string) string {
	switch python {
	case "dict":
		return "object"
	case "float":
		return "number"
	case "tuple":
		return "array"
	}
	return python
}

func (q *question) text() string {
	if len(q.Question) > 0 && len(q.Question[0]) > 0 {
		return q.Question[0][0].Content
	}
	return fmt.Sprint("question ", q.ID)
}
