// SPDX-License-Identifier: Apache-2.0

package engines

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/wherryproject/wherry/internal/enginesocket"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
)

const (
	// dockerWithin bounds how long Docker may take to begin an answer.
	dockerWithin = 20 * time.Second
	// maxAnswer bounds what is read of an answer: a list of ten thousand containers is a few megabytes.
	maxAnswer = 64 << 20
)

// docker is Docker, by the Engine API over a socket.
type docker struct {
	api       enginesocket.Docker
	snapshots func(ctx context.Context, namespace, id string) (*Layers, error)
}

func newDocker(ctx context.Context, o Options) (Engine, error) {
	socket, err := enginesocket.DockerPlace(o.caller()).Find(ctx, o.Address, o.Getenv)
	if err != nil {
		return nil, err
	}
	return &docker{enginesocket.Docker{Socket: socket, Within: dockerWithin}, o.Snapshots}, nil
}

// decode reads an answer in JSON.
func decode(body io.ReadCloser, into any) error {
	defer body.Close()
	if err := json.NewDecoder(io.LimitReader(body, maxAnswer)).Decode(into); err != nil {
		return fmt.Errorf("an answer that cannot be read: %w", err)
	}
	return nil
}

// Find implements Engine.
func (d *docker) Find(ctx context.Context, t target.Target) (*Container, error) {
	body, err := d.api.Get(ctx, "/containers/"+url.PathEscape(t.Name)+"/json", nil)
	if err != nil {
		return nil, enginesocket.Advise(err, "docker ps -a lists those that there are")
	}
	var got inspected
	if err := decode(body, &got); err != nil {
		return nil, err
	}
	c := got.container(target.Docker)
	c.ReadLog = func(ctx context.Context, lines int) (io.ReadCloser, error) {
		body, err := d.api.Get(ctx, "/containers/"+url.PathEscape(c.ID)+"/logs", url.Values{"stdout": {"1"},
			"stderr": {"1"}, "tail": {strconv.Itoa(lines)}})
		if err != nil || got.Config.TTY {
			return body, err
		}
		return &frames{from: body}, nil
	}
	if c.Layers == nil && !c.Alive() && d.snapshots != nil { // kept by containerd
		if c.Layers, err = d.snapshots(ctx, "moby", c.ID); err != nil {
			return nil, fmt.Errorf("its files: %w", err)
		}
	}
	return c, nil
}

// List implements Engine.
func (d *docker) List(ctx context.Context) ([]*Container, error) {
	body, err := d.api.Get(ctx, "/containers/json", url.Values{"all": {"1"}})
	if err != nil {
		return nil, err
	}
	var got []struct {
		ID      string `json:"Id"`
		Names   []string
		Image   string
		State   string
		Created int64
	}
	if err := decode(body, &got); err != nil {
		return nil, err
	}
	var all []*Container
	for _, g := range got {
		c := &Container{ID: g.ID, Image: g.Image, State: stateOf(g.State), Created: time.Unix(g.Created, 0)}
		if len(g.Names) > 0 {
			c.Name = strings.TrimPrefix(g.Names[0], "/")
		}
		c.Target = target.Target{Engine: target.Docker, Name: nameOrID(c.Name, c.ID)}
		all = append(all, c)
	}
	return all, nil
}

func nameOrID(name, id string) string {
	if name != "" {
		return name
	}
	return id
}

// stateOf is a state in the engines' words.
func stateOf(word string) State {
	switch strings.ToLower(word) {
	case "running", "restarting", "removing", "stopping", "up":
		return Running
	case "paused":
		return Paused
	case "created", "configured", "initialized":
		return Created
	}
	return Exited
}
