package acpserver

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/coder/acp-go-sdk"
)

// The golden messages of the Go module mean the same after they were read and written.
func TestTheGoldenMessagesOfTheProtocolAreSpoken(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/coder/acp-go-sdk").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "testdata", "json_golden", "*.json"))
	if err != nil || len(files) != 33 {
		t.Fatalf("there are %d golden messages: %v", len(files), err)
	}
	kinds := []struct {
		prefix string
		zero   any
	}{
		{"cancel_notification", acp.CancelNotification{}},
		{"content_", acp.ContentBlock{}},
		{"fs_read_text_file_request", acp.ReadTextFileRequest{}},
		{"fs_read_text_file_response", acp.ReadTextFileResponse{}},
		{"fs_write_text_file_request", acp.WriteTextFileRequest{}},
		{"initialize_request", acp.InitializeRequest{}},
		{"initialize_response", acp.InitializeResponse{}},
		{"new_session_request", acp.NewSessionRequest{}},
		{"new_session_response", acp.NewSessionResponse{}},
		{"permission_outcome_", acp.RequestPermissionOutcome{}},
		{"prompt_request", acp.PromptRequest{}},
		{"request_permission_request", acp.RequestPermissionRequest{}},
		{"request_permission_response", acp.RequestPermissionResponse{}},
		{"session_update_", acp.SessionUpdate{}},
		{"tool_content_", acp.ToolCallContent{}},
	}
	accepted := 0
	for _, file := range files {
		name := filepath.Base(file)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var value any
		for _, k := range kinds {
			if strings.HasPrefix(name, k.prefix) {
				value = reflect.New(reflect.TypeOf(k.zero)).Interface()
			}
		}
		if value == nil {
			t.Errorf("%s has no type", name)
			continue
		}
		if err := json.Unmarshal(text, value); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		written, err := json.Marshal(value)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var before, after any
		if json.Unmarshal(text, &before) != nil || json.Unmarshal(written, &after) != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%s is written as %s", name, written)
		}
		blocks := []acp.ContentBlock{}
		switch v := value.(type) {
		case *acp.PromptRequest:
			blocks = v.Prompt
		case *acp.ContentBlock:
			blocks = append(blocks, *v)
		default:
			continue
		}
		refused := name == "content_audio.json" || name == "content_resource_blob.json" || name == "content_image.json" // its data is cut off
		if _, err := messageOf(blocks); (err != nil) != refused {
			t.Errorf("%s as a prompt: %v", name, err)
		}
		accepted++
	}
	if accepted != 7 {
		t.Errorf("%d messages are prompts", accepted)
	}
}
