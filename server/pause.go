package server

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
	"github.com/runlane/runlane-go/lane"
)

type pauseBody struct {
	reasonBody
	Until time.Time `json:"until" doc:"when the pause ends; without it, it lasts until someone resumes"`
}

type pauseQueueInput struct {
	Queue runlane.QueueName `path:"queue" doc:"the name of the queue"`
	Body  pauseBody         `body:"json"`
}

type pauseTaskInput struct {
	Task runlane.TaskID `path:"task" doc:"the id of the task"`
	Body pauseBody      `body:"json"`
}

type resumeQueueInput struct {
	Queue runlane.QueueName `path:"queue" doc:"the name of the queue"`
	Body  reasonBody        `body:"json"`
}

type resumeTaskInput struct {
	Task runlane.TaskID `path:"task" doc:"the id of the task"`
	Body reasonBody     `body:"json"`
}

func (b *pauseBody) options(c *call) (*core.PauseOptions, error) {
	by, err := b.by(c.by)
	return &core.PauseOptions{ChangeOptions: by, Until: b.Until}, err
}

func pauseReply(p *lane.Pause, err error) (*reply, error) {
	if err != nil {
		return nil, err
	}
	return object("pause", shown.PauseOf(p)), nil
}

func pauseQueue(ctx context.Context, c *call, in *pauseQueueInput) (*reply, error) {
	options, err := in.Body.options(c)
	if err != nil {
		return nil, err
	}
	return pauseReply(c.rt.Queues().Pause(ctx, in.Queue, options))
}

func pauseTask(ctx context.Context, c *call, in *pauseTaskInput) (*reply, error) {
	options, err := in.Body.options(c)
	if err != nil {
		return nil, err
	}
	return pauseReply(c.rt.Tasks().Pause(ctx, in.Task, options))
}

func resumeQueue(ctx context.Context, c *call, in *resumeQueueInput) (*reply, error) {
	by, err := in.Body.by(c.by)
	if err != nil {
		return nil, err
	}
	p, err := c.rt.Queues().Resume(ctx, in.Queue, &by)
	return pauseReply(p, refused(err)) // what is not paused is a conflict
}

func resumeTask(ctx context.Context, c *call, in *resumeTaskInput) (*reply, error) {
	by, err := in.Body.by(c.by)
	if err != nil {
		return nil, err
	}
	p, err := c.rt.Tasks().Resume(ctx, in.Task, &by)
	return pauseReply(p, refused(err))
}
