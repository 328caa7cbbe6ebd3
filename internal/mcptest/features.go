package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Capabilities of a server with resources and prompts.
const withFeatures = `{"tools":{"listChanged":true},"resources":{},"prompts":{}}`

// feature answers a request about resources and prompts. The list of resources has two
// pages. What a resource does is in its uri: file:///dot is binary, file:///two has two parts, and file:///exit ends
// the server.
func (s *Server) feature(m message) (result string, known bool) {
	if !s.Features {
		return "", false
	}
	switch m.Method {
	case "resources/list":
		if m.Params.Cursor == "" {
			return `{"resources":[{"uri":"file:///a.txt","name":"a","description":"one\u200btwo","mimeType":"text/plain","size":3}],"nextCursor":"1"}`, true
		}
		return `{"resources":[{"uri":"file:///dot","name":"dot","mimeType":"image/png"}]}`, true
	case "resources/templates/list":
		return `{"resourceTemplates":[{"uriTemplate":"file:///{path}","name":"any file"}]}`, true
	case "resources/read":
		switch m.Params.URI {
		case "file:///dot":
			return `{"contents":[{"uri":"file:///dot","mimeType":"image/png","blob":"iVBORw0KGgo="}]}`, true
		case "file:///two":
			return `{"contents":[{"uri":"file:///two/1","text":"one"},{"uri":"file:///two/2","text":"two"}]}`, true
		case "file:///none":
			return "!no such resource", true
		}
		quoted, _ := json.Marshal("in\u200bside " + m.Params.URI)
		return fmt.Sprintf(`{"contents":[{"uri":%q,"mimeType":"text/plain","text":%s}]}`, m.Params.URI, quoted), true
	case "prompts/list":
		return `{"prompts":[{"name":"greet","description":"Greets.","arguments":[{"name":"whom","required":true}]}]}`, true
	case "prompts/get":
		return fmt.Sprintf(`{"messages":[{"role":"user","content":{"type":"text","text":"Greet\u200b %s"}},{"role":"assistant","content":{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}}]}`, jsonText(m.Params.Arguments)), true
	}
	return "", false
}

// jsonText is JSON as a part of a JSON text.
func jsonText(raw json.RawMessage) string {
	quoted, _ := json.Marshal(string(raw))
	return string(quoted[1 : len(quoted)-1])
}

// task returns the status of a task, which the text of its call selects: quick completes at
// the third request, long asks the client to poll again after an hour, failed has failed,
// unknown does not exist, asks requires a name, and file completes once the file done
// exists beside the ledger.
func (s *Server) task(m message) string {
	kind := strings.TrimPrefix(m.Params.TaskID, "t-")
	if m.Method == "tasks/update" {
		s.Note("update "+string(m.Params.Responses), m)
		return `{"resultType":"complete"}`
	}
	s.Note("get "+kind, m)
	noted, _ := os.ReadFile(s.Ledger)
	about := fmt.Sprintf(`"resultType":"complete","taskId":"t-%s","pollIntervalMs":20`, kind)
	done := fmt.Sprintf(`{%s,"status":"completed","result":{"content":[{"type":"text","text":"done"}]}}`, about)
	switch asked := strings.Count(string(noted), "get "+kind); {
	case kind == "unknown":
		return "!no such task"
	case kind == "failed":
		return fmt.Sprintf(`{%s,"status":"failed","error":{"code":-32603,"message":"it broke"}}`, about)
	case kind == "asks" && !strings.Contains(string(noted), "update"):
		return fmt.Sprintf(`{%s,"status":"input_required","inputRequests":{"n":{"method":"elicitation/create","params":%s}}}`, about, elicitation("Your name?"))
	case kind == "file":
		if _, err := os.Stat(filepath.Join(filepath.Dir(s.Ledger), "done")); err == nil {
			return done
		}
	case kind == "asks", kind == "long", kind == "quick" && asked > 2:
		return done
	}
	return fmt.Sprintf(`{%s,"status":"working"}`, about)
}
