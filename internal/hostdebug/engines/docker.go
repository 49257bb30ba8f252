// SPDX-License-Identifier: Apache-2.0

package engines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/wherryproject/wherry/internal/hostdebug/target"
)

const (
	// dockerWithin bounds how long Docker may take to begin an answer.
	dockerWithin = 20 * time.Second
	// maxAnswer bounds what is read of an answer: a list of ten thousand containers is a few megabytes.
	maxAnswer = 64 << 20
)

// docker is Docker, or podman's service, by the Engine API over a socket.
type docker struct {
	kind      target.Engine
	socket    string
	client    *http.Client
	snapshots func(ctx context.Context, namespace, id string) (*Layers, error)
}

func newDocker(o Options) (Engine, error) {
	paths := []string{"/run/docker.sock", "/var/run/docker.sock"}
	if o.UID != 0 {
		paths = append([]string{fmt.Sprintf("/run/user/%d/docker.sock", o.UID)}, paths...)
	}
	socket, err := Socket("Docker", "DOCKER_HOST", o, paths)
	if err != nil {
		return nil, err
	}
	d := dockerAt(target.Docker, socket)
	d.snapshots = o.Snapshots
	return d, nil
}

// dockerAt is an engine behind a socket that speaks the Engine API.
func dockerAt(kind target.Engine, socket string) *docker {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return &docker{kind: kind, socket: socket, client: &http.Client{Transport: &http.Transport{DialContext: dial,
		DisableKeepAlives: true, ResponseHeaderTimeout: dockerWithin}}}
}

// Socket is the path of an engine's socket: the one that was named, by flag or variable, else the first that is there.
func Socket(name, variable string, o Options, usual []string) (string, error) {
	named := o.Address
	if named == "" {
		named = o.Getenv(variable)
	}
	if named != "" {
		path := strings.TrimPrefix(named, "unix://")
		if strings.Contains(path, "://") || !strings.HasPrefix(path, "/") {
			return "",
				fmt.Errorf("%s is not a socket of this machine: to debug its containers, use wherry on that machine",
					named)
		}
		return path, nil
	}
	for _, path := range usual {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", &Absent{fmt.Sprintf("%s is not on this machine: there is no socket %s (--address or %s names another)",
		name, strings.Join(usual, " nor "), variable)}
}

// get asks for something.
func (d *docker) get(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker"+path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := d.client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) { // its words are of an address that nobody typed
			err = wrapped.Err
		}
		return nil, fmt.Errorf("socket %s: %w", d.socket, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	var said struct{ Message string }
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil || json.Unmarshal(text, &said) != nil || said.Message == "" {
		said.Message = resp.Status
	}
	return nil, errors.New(said.Message)
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
	body, err := d.get(ctx, "/containers/"+url.PathEscape(t.Name)+"/json", nil)
	if err != nil {
		return nil, fmt.Errorf("%w (%s ps -a lists those that there are)", err, d.kind)
	}
	var got inspected
	if err := decode(body, &got); err != nil {
		return nil, err
	}
	c := got.container(d.kind)
	c.ReadLog = func(ctx context.Context, lines int) (io.ReadCloser, error) {
		body, err := d.get(ctx, "/containers/"+url.PathEscape(c.ID)+"/logs", url.Values{"stdout": {"1"},
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
	body, err := d.get(ctx, "/containers/json", url.Values{"all": {"1"}})
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
		c.Target = target.Target{Engine: d.kind, Name: nameOrID(c.Name, c.ID)}
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
