package place

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/journal"
)

// queueNote is the key of the note with the name of a journal's task queue.
const queueNote = "temporal/queue"

// examineWithin bounds the time that [Examine] waits for a Temporal server.
const examineWithin = 10 * time.Second

// QueueOf returns the task queue of a journal. Its name is kept in the journal and is
// random, so the workers of another journal at the same Temporal server have another one.
func QueueOf(ctx context.Context, store journal.Store) (name string, err error) {
	body, err := json.Marshal("pawl/" + engine.NewID())
	if err != nil {
		return "", err
	}
	note, _, err := store.Note(ctx, journal.Note{Key: queueNote, At: time.Now(), Body: body})
	if err == nil {
		err = json.Unmarshal(note.Body, &name)
	}
	if err != nil {
		return "", fmt.Errorf("place: find the task queue of the journal: %w", err)
	}
	return name, nil
}

// queueOf returns the task queue of the workers that have a place, empty for all workers
// of the queue.
func queueOf(queue string, p event.Place) string {
	switch {
	case p.Label != "":
		return queue + "/label/" + p.Label
	case p.Host != "":
		return queue + "/host/" + p.Host
	}
	return ""
}

// Examine describes a task queue, and what the Temporal server needs so that tenants take
// turns. No request of its API returns whether it has that.
func Examine(ctx context.Context, c client.Client, namespace, queue string) (detail, lacks string, err error) {
	ctx, cancel := context.WithTimeout(ctx, examineWithin)
	defer cancel()
	p, err := c.WorkflowService().ListTaskQueuePartitions(ctx, &workflowservice.ListTaskQueuePartitionsRequest{
		Namespace: namespace, TaskQueue: &taskqueue.TaskQueue{Name: queue, Kind: enums.TASK_QUEUE_KIND_NORMAL},
	})
	if err != nil {
		return "", "", fmt.Errorf("place: examine Temporal: %w", err)
	}
	detail, lacks = turns(queue, len(p.ActivityTaskQueuePartitions))
	return detail, lacks, nil
}

// turns describes a task queue with a number of partitions for [Examine].
func turns(queue string, partitions int) (detail, lacks string) {
	detail = fmt.Sprintf("answers; the task queue of this journal is %s, with partitions: %d", queue, partitions)
	lacks = "tenants take turns only with matching.enableFairness: true in its dynamic config, which is off by default and cannot be read; without it runs of one priority are placed in the order of their starts"
	if partitions > 1 {
		lacks += "; the turns hold within a partition: for exact ones set matching.numTaskqueueReadPartitions and matching.numTaskqueueWritePartitions to 1"
	}
	return detail, lacks
}
