package mcpserver_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/internal/mcpserver"
	"github.com/pawlrun/pawl/journal"
)

// modern returns a request in the version without sessions.
func modern(id int, method, params, capabilities string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"%s","params":{%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":%s,"%s":"k"}}}`, id, method, params, capabilities, mcpserver.KeyMeta)
}

const withTasks = `{"extensions":{"io.modelcontextprotocol/tasks":{}},"elicitation":{"form":{}}}`

// taskState is a task as decoded by a client.
type taskState struct {
	ResultType, TaskID, Status, StatusMessage string
	PollIntervalMs                            int
	InputRequests                             map[string]struct {
		Method string
		Params struct{ Message string }
	}
	Result *struct {
		Content []struct{ Text string }
		IsError bool
	}
}

// request sends a request and returns its task.
func (f frames) request(id int, method, params string) taskState {
	f.t.Helper()
	f.send(modern(id, method, params, withTasks))
	m := f.reply(id)
	if m.Error != nil {
		f.t.Fatalf("%s %s fails: %+v", method, params, m.Error)
	}
	return decode[taskState](f.t, m.Result)
}

func TestAClientWithTasksGetsTheRunAsATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newest(t, agents)
		call := `"name":"writes","arguments":{"task":"go"}`
		begun := s.frames().request(1, "tools/call", call)
		if begun.ResultType != "task" || begun.Status != "working" || begun.TaskID == "" || begun.PollIntervalMs == 0 {
			t.Fatalf("the call gives %+v", begun)
		}
		about := `"taskId":"` + begun.TaskID + `"`
		f := s.frames() // the task outlives the connection
		if again := f.request(1, "tools/call", call); again.TaskID != begun.TaskID {
			t.Errorf("the same call is task %s, and was %s", again.TaskID, begun.TaskID)
		}
		for round, file := range []string{"one.txt", "two.txt"} {
			synctest.Wait()
			asked := f.request(2, "tasks/get", about)
			if asked.ResultType != "complete" || asked.Status != "input_required" || len(asked.InputRequests) != 1 {
				t.Fatalf("the task is %+v", asked)
			}
			for key, q := range asked.InputRequests {
				if q.Method != "elicitation/create" || !strings.Contains(q.Params.Message, file) {
					t.Errorf("round %d asks %+v", round, q)
				}
				f.request(3, "tasks/update", fmt.Sprintf(`%s,"inputResponses":{"%s":{"action":"accept","content":{"decision":"approve"}},"none":{"action":"decline"}}`, about, key))
			}
		}
		synctest.Wait()
		done := f.request(4, "tasks/get", about)
		if done.Status != "completed" || done.Result == nil || done.Result.IsError || done.Result.Content[0].Text != "the end" || !s.exists("one.txt") || !s.exists("two.txt") {
			t.Errorf("the task is %+v", done)
		}
	})
}

func TestATaskIsCancelledAsACallIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newest(t, agents)
		f := s.frames()
		begun := f.request(1, "tools/call", `"name":"thinks","arguments":{"task":"go"}`)
		about := `"taskId":"` + begun.TaskID + `"`
		f.request(2, "tasks/cancel", about)
		for s.standing(begun.TaskID).State != journal.Paused {
			time.Sleep(time.Second) // virtual time
		}
		if stands := f.request(3, "tasks/get", about); stands.Status != "working" || !strings.Contains(stands.StatusMessage, "pawl runs resume "+begun.TaskID) {
			t.Errorf("the task is %+v", stands)
		}
		f.request(4, "tasks/cancel", about)
		if again := f.request(5, "tools/call", `"name":"thinks","arguments":{"task":"go"}`); again.TaskID != begun.TaskID {
			t.Errorf("the same call is task %s, and was %s", again.TaskID, begun.TaskID)
		}
		time.Sleep(time.Minute)
		if done := f.request(6, "tasks/get", about); done.Status != "completed" {
			t.Errorf("the task is %+v", done)
		}
	})
}

func TestTasksAreForClientsThatDeclareThem(t *testing.T) {
	s := newest(t, agents)
	f := s.frames()
	f.send(modern(1, "tools/call", `"name":"reads","arguments":{"task":"go","language":"x"}`, "{}"))
	run, said, isError := runOf(t, f.reply(1))
	if isError || said != "the end" {
		t.Errorf("a client without tasks gets %t %s", isError, said)
	}
	for i, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		f.send(modern(10+i, method, `"taskId":"`+run+`"`, "{}"))
		if m := f.reply(10 + i); m.Error == nil || m.Error.Code != -32021 {
			t.Errorf("%s of a client without tasks gives %+v", method, m)
		}
		f.send(modern(20+i, method, `"taskId":"none"`, withTasks))
		if m := f.reply(20 + i); m.Error == nil || m.Error.Code != -32602 {
			t.Errorf("%s of no task gives %+v", method, m)
		}
	}
}
