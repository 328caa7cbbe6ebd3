package place

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/journal"
)

const (
	// scheduledWorkflow is the workflow that a schedule starts each time. It goes on as
	// long as its run, so that Temporal knows whether the next one would overlap.
	scheduledWorkflow = "pawl.scheduled"
	// begin is the activity that makes the run.
	begin = "begin"
	// templates begins the keys of the notes with the first events of scheduled runs.
	templates = "schedule/"
	cronMemo  = "cron"

	// catchUp is how late a run may be that was due while Temporal was down.
	catchUp = 10 * time.Minute
)

// Schedule starts a run of a file at certain times.
type Schedule struct {
	Name string `json:"name"`
	// Cron holds the times, as Temporal reads them: five fields, or seven from seconds to
	// years. Zone is their time zone, empty for UTC.
	Cron string `json:"cron"`
	Zone string `json:"zone,omitempty"`
	// Overlap is what happens when a run is due while the last one goes on.
	Overlap string `json:"overlap,omitempty"`
	// Next and Last are times of the next and the last run, zero if there is none.
	Next time.Time `json:"next,omitzero"`
	Last time.Time `json:"last,omitzero"`
}

// Errors for schedules.
var (
	ErrSchedule         = errors.New("place: not a schedule")
	ErrScheduleExists   = errors.New("place: there is a schedule of this name; delete it first")
	ErrScheduleNotFound = errors.New("place: there is no schedule of this name")
)

// overlaps returns the policies by name.
func overlaps() map[string]enums.ScheduleOverlapPolicy {
	return map[string]enums.ScheduleOverlapPolicy{
		"skip":   enums.SCHEDULE_OVERLAP_POLICY_SKIP,
		"buffer": enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE,
		"allow":  enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL,
	}
}

// firing is the input of the workflow of a schedule.
type firing struct {
	Schedule string `json:"schedule"`
	// Template names the note with the first event.
	Template string `json:"template"`
}

// scheduleID returns the id of a schedule of the journal with a task queue.
func scheduleID(queue, name string) string { return queue + "/schedule/" + name }

// CreateSchedule creates a schedule of runs with a first event, which it keeps in the
// journal: Temporal has only its name there.
func CreateSchedule(ctx context.Context, c client.Client, store journal.Store, s Schedule, started event.RunStarted) error {
	overlap, is := overlaps()[cmp.Or(s.Overlap, "skip")]
	switch {
	case s.Name == "" || len(s.Name) > 100 || strings.ContainsAny(s.Name, "/ \t\n"):
		return fmt.Errorf("%w: the name is %q; give 1 to 100 characters without spaces and slashes", ErrSchedule, s.Name)
	case !is:
		return fmt.Errorf("%w: overlap is %q; it must be skip, buffer or allow", ErrSchedule, s.Overlap)
	}
	started.Workspace, started.Place = "", event.Place{} // the worker's
	started.Schedule, started.Trace = s.Name, event.Trace{}
	body, err := json.Marshal(started)
	if err != nil {
		return fmt.Errorf("place: schedule %s: %w", s.Name, err)
	}
	queue, err := QueueOf(ctx, store)
	if err != nil {
		return err
	}
	template := engine.NewID()
	if _, _, err := store.Note(ctx, journal.Note{Key: templates + template, At: time.Now(), Body: body}); err != nil {
		return fmt.Errorf("place: schedule %s: %w", s.Name, err)
	}
	_, err = c.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID:            scheduleID(queue, s.Name),
		Spec:          client.ScheduleSpec{CronExpressions: []string{s.Cron}, TimeZoneName: s.Zone},
		Overlap:       overlap,
		CatchupWindow: catchUp,
		Memo:          map[string]any{cronMemo: s.Cron},
		Action: &client.ScheduleWorkflowAction{
			ID: scheduleID(queue, s.Name) + "/" + template, Workflow: scheduledWorkflow, TaskQueue: queue,
			Args: []any{firing{Schedule: s.Name, Template: template}},
		},
	})
	if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return fmt.Errorf("%w (%s)", ErrScheduleExists, s.Name)
	}
	if err != nil {
		return fmt.Errorf("place: schedule %s: %w", s.Name, err)
	}
	return nil
}

// Schedules returns the schedules of a journal by name. The list may be some seconds old.
func Schedules(ctx context.Context, c client.Client, store journal.Store) ([]Schedule, error) {
	queue, err := QueueOf(ctx, store)
	if err != nil {
		return nil, err
	}
	list, err := c.ScheduleClient().List(ctx, client.ScheduleListOptions{})
	if err != nil {
		return nil, fmt.Errorf("place: list schedules: %w", err)
	}
	all := []Schedule{}
	for list.HasNext() {
		e, err := list.Next()
		if err != nil {
			return nil, fmt.Errorf("place: list schedules: %w", err)
		}
		name, ours := strings.CutPrefix(e.ID, scheduleID(queue, ""))
		if !ours || e.WorkflowType.Name != scheduledWorkflow {
			continue
		}
		s := Schedule{Name: name}
		if kept := e.Memo.GetFields()[cronMemo]; kept != nil {
			_ = converter.GetDefaultDataConverter().FromPayload(kept, &s.Cron)
		}
		if len(e.NextActionTimes) > 0 {
			s.Next = e.NextActionTimes[0]
		}
		if n := len(e.RecentActions); n > 0 {
			s.Last = e.RecentActions[n-1].ActualTime
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Schedule) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// DeleteSchedule deletes a schedule. A run that it has started goes on.
func DeleteSchedule(ctx context.Context, c client.Client, store journal.Store, name string) error {
	queue, err := QueueOf(ctx, store)
	if err != nil {
		return err
	}
	err = c.ScheduleClient().GetHandle(ctx, scheduleID(queue, name)).Delete(ctx)
	if _, missing := errors.AsType[*serviceerror.NotFound](err); missing {
		return fmt.Errorf("%w (%s)", ErrScheduleNotFound, name)
	}
	if err != nil {
		return fmt.Errorf("place: delete schedule %s: %w", name, err)
	}
	return nil
}

// scheduled is the workflow of one time of a schedule.
func scheduled(ctx workflow.Context, f firing) error {
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:        runOf(workflow.GetInfo(ctx).WorkflowExecution.ID),
		ParentClosePolicy: enums.PARENT_CLOSE_POLICY_ABANDON,
	})
	return workflow.ExecuteChildWorkflow(ctx, Workflow, input{Begin: &f}).Get(ctx, nil)
}

// runOf returns the id of the run of a scheduled workflow, whose own id has the time.
func runOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "s" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:11]
}

// beginRequest is the input of the activity that makes a run.
type beginRequest struct {
	Run string `json:"run"`
	firing
}

// begin makes the run of a schedule, once.
func (a *activities) begin(ctx context.Context, r beginRequest) error {
	none := json.RawMessage("null") // a note that is not there is made
	note, _, err := a.Store.Note(ctx, journal.Note{Key: templates + r.Template, At: time.Now(), Body: none})
	if err != nil {
		a.Log.Warn("a scheduled run is not made", "schedule", r.Schedule, "error", err)
		return errRefused
	}
	var started event.RunStarted
	if err := json.Unmarshal(note.Body, &started); err != nil || started.Machine == "" {
		a.Log.Error("the journal does not have what a schedule starts; delete the schedule, and create it again", "schedule", r.Schedule)
		return temporal.NewNonRetryableApplicationError("the journal does not have what the schedule starts", "missing", nil)
	}
	if err := a.Driver.Begin(ctx, r.Run, started); err != nil {
		a.Log.Warn("a scheduled run is not made", "schedule", r.Schedule, "run", r.Run, "error", err)
		return errRefused
	}
	return nil
}
