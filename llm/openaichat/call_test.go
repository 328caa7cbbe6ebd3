package openaichat_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/openaichat"
)

// Relays of Gemini send each call whole and give all of them the number 0, or
// none, and no id (NousResearch/hermes-agent#62940). Of two calls in one no
// arguments could be read.
func TestFragmentsJoinTheirCallUnderAnyNumbering(t *testing.T) {
	const end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n" + "data: [DONE]\n\n"
	for name, c := range map[string]struct {
		deltas []string
		want   []string
	}{
		"one number, no id, one name": {
			[]string{`{"index":0,"id":"","function":{"name":"ls","arguments":"{\"at\":1}"}}`, `{"index":0,"id":"","function":{"name":"ls","arguments":"{\"at\":2}"}}`},
			[]string{`ls {"at":1}`, `ls {"at":2}`},
		},
		"one number, no id, in one list": {
			[]string{`{"index":0,"function":{"name":"ls","arguments":"{}"}},{"index":0,"function":{"name":"ls","arguments":"{}"}}`},
			[]string{`ls {}`, `ls {}`},
		},
		"no number, no id, objects": {
			[]string{`{"function":{"name":"ls","arguments":{"at":1}}}`, `{"function":{"name":"ls","arguments":{"at":2}}}`},
			[]string{`ls {"at":1}`, `ls {"at":2}`},
		},
		"one number, no id, other names, no arguments": {
			[]string{`{"index":0,"function":{"name":"ls"}}`, `{"index":0,"function":{"name":"pwd","arguments":""}}`},
			[]string{`ls {}`, `pwd {}`},
		},
		"a name with every fragment": {
			[]string{`{"index":0,"id":"a","function":{"name":"ls","arguments":"{\"at\":"}}`, `{"index":0,"function":{"name":"ls","arguments":"{}"}}`, `{"index":0,"function":{"name":"ls","arguments":"}"}}`, `{"index":0,"function":{"name":"ls","arguments":""}}`},
			[]string{`ls {"at":{}}`},
		},
		"an id with every fragment": {
			[]string{`{"index":0,"id":"a","function":{"name":"ls","arguments":"{\"at\":"}}`, `{"index":0,"id":"b","function":{"arguments":"1"}}`, `{"index":0,"id":"c","function":{"name":null,"arguments":"}"}}`},
			[]string{`ls {"at":1}`},
		},
		"one number, side by side by their ids": {
			[]string{
				`{"index":0,"id":"a","function":{"name":"ls","arguments":"{\"at\":"}}`, `{"index":0,"id":"b","function":{"name":"ls","arguments":"{\"at\":"}}`,
				`{"index":0,"id":"a","function":{"arguments":"1}"}}`, `{"index":0,"id":"b","function":{"arguments":"2}"}}`,
			},
			[]string{`ls {"at":1}`, `ls {"at":2}`},
		},
		"the rest under a number that no call has": {
			[]string{
				`{"index":0,"id":"a","function":{"name":"ls","arguments":"{}"}}`, `{"index":0,"id":"b","function":{"name":"ls","arguments":"{\"at\":"}}`,
				`{"index":1,"function":{"arguments":"1"}}`, `{"index":2,"function":{"arguments":"}"}}`,
				`{"index":1,"id":"c","function":{"name":"pwd","arguments":"{\"at\":"}}`, `{"index":2,"function":{"arguments":"2}"}}`,
			},
			[]string{`ls {}`, `ls {"at":1}`, `pwd {"at":2}`},
		},
		"fragments side by side, the second first": {
			[]string{
				`{"index":1,"id":"b","function":{"name":"ls","arguments":"{\"at\":"}}`, `{"index":0,"id":"a","function":{"name":"ls","arguments":"{\"at\":"}}`,
				`{"index":1,"function":{"arguments":"2}"}}`, `{"index":0,"function":{"arguments":"1}"}}`,
			},
			[]string{`ls {"at":2}`, `ls {"at":1}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for _, delta := range c.deltas {
					_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"tool_calls":[`+delta+"]}}]}\n\n")
				}
				_, _ = io.WriteString(w, end)
			}))
			defer srv.Close()
			m := openaichat.New(openaichat.Options{BaseURL: srv.URL})
			resp, err := m.Stream(t.Context(), &llm.Request{Model: "m", Messages: []*llm.Message{llm.UserText("go")}}, func(llm.Delta) {})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			ids := map[string]bool{}
			for _, call := range resp.Parts.ToolCalls() {
				got = append(got, call.Name+" "+string(call.Args)+call.ArgsText)
				ids[call.ProviderID] = true
			}
			if diff := cmp.Diff(c.want, got); diff != "" || len(ids) != len(got) {
				t.Errorf("%d ids (-want +got)\n%s", len(ids), diff)
			}
		})
	}
}
