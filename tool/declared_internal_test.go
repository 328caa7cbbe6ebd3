package tool

import (
	"context"
	"encoding/json"
	"testing"
)

func TestTheSchemaOfAToolIsCompiledOnceForAllItsRuns(t *testing.T) {
	type args struct {
		Text string `json:"text"`
	}
	made := New("echo", "says it again", func(_ context.Context, a args) (string, error) { return a.Text, nil })
	changed := made
	changed.Schema = json.RawMessage(`{"type":"object","properties":{"text":{"type":"integer"}}}`)
	schema := func(x Tool) *Schema {
		set, err := NewSet(x)
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := set.lookup("echo").schema.compile()
		if err != nil {
			t.Fatal(err)
		}
		return compiled
	}
	first, again := schema(made), schema(made)
	if first != again {
		t.Error("two sets of one tool have compiled its schema twice")
	}
	if s := schema(changed); s == schema(made) || s.Validate(json.RawMessage(`{"text":1}`)) != nil {
		t.Error("a tool whose schema was changed is held to the one that it had")
	}
}
