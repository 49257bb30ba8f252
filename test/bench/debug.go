// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/creack/pty"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/debug/debugask"
)

// debugSessions: from the command's start to the shell's prompt on a terminal: `wherry debug`, against the two bare
// calls for such a container and against `kubectl debug` with the same image, the machine's own and the built-in one;
// and image exec of `true`, the whole command, against the bare calls. Each is measured in a pod that nobody has
// debugged before: what was debugged stays in a pod.
func (b *bench) debugSessions(ctx context.Context) ([]result, error) {
	config := "--kubeconfig=" + kubeconfig(b.server.dataDir)
	likeKubectl := []string{config, "debug", "-it", "debugged", "--image=" + debugask.ToolboxImage,
		"--image-pull-policy=IfNotPresent", "--target=main"}
	shell := func(program string, args ...string) side {
		return b.inNewPod("debugged", func(ctx context.Context) (map[string]time.Duration, error) {
			d, err := promptAfter(exec.CommandContext(ctx, program, args...))
			return map[string]time.Duration{"took": d}, err
		})
	}
	imageExec := b.inNewPod("debugged", func(ctx context.Context) (map[string]time.Duration, error) {
		begun := time.Now()
		out, err := exec.CommandContext(ctx, b.wherry, "exec", config, "debugged", "-m", debugask.ToolboxImage, "--",
			"true").CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("wherry exec: %w: %s", err, out)
		}
		return map[string]time.Duration{"took": time.Since(begun)}, nil
	})
	sides := []side{b.bareDebug(true, "/bin/sh"), shell(b.wherry, "debug", config, "-q", "debugged"),
		shell(b.wherry, append([]string{"kubectl"}, likeKubectl...)...), b.bareDebug(false, "/bin/true"), imageExec}
	if path, err := exec.LookPath("kubectl"); err == nil {
		sides = append(sides, shell(path, likeKubectl...))
	}
	s, err := inTurns(ctx, b.n, sides...)
	if err != nil {
		return nil, err
	}
	took := func(side int) time.Duration { return s[side].median("took") }
	rows := []result{
		{What: "`wherry debug POD` → prompt on a terminal (bare: CreateContainer + StartContainer)", Figure: took(1),
			Bare: took(0), MaxOver: 60 * time.Millisecond},
		{What: "… against `wherry kubectl debug -it --image --target` as the bare side", Figure: took(1),
			Bare: took(2)},
		{What: "`wherry exec POD -m IMAGE -- true`, whole command (bare: create, start, exit, remove)", Figure: took(4),
			Bare: took(3), MaxRatio: 1.3},
	}
	if len(s) > 5 { // the machine has a kubectl of its own
		rows = slices.Insert(rows, 1,
			result{What: "… against `kubectl debug -it --image --target` (the machine's own) as the bare side",
				Figure: took(1), Bare: took(5), MaxRatio: 0.6})
	}
	return rows, b.bare.nothingLeft(ctx)
}

// side is one side of a comparison, measured once.
type side = func(context.Context) (map[string]time.Duration, error)

// settling is how long a new pod is left alone before something is measured in it: nobody debugs a pod while its start
// is still being told.
const settling = 1500 * time.Millisecond

// inNewPod measures in a pod that is made for it and deleted afterwards.
func (b *bench) inNewPod(name string, measure side) side {
	return func(ctx context.Context) (map[string]time.Duration, error) {
		uid, err := b.api.create(ctx, name)
		if err != nil {
			return nil, err
		}
		if _, err := b.api.awaitRunning(ctx, uid); err != nil {
			return nil, err
		}
		time.Sleep(settling)
		took, err := measure(ctx)
		if err != nil {
			return nil, err
		}
		if err := b.api.delete(ctx, name); err != nil {
			return nil, err
		}
		_, err = b.awaitClean(ctx, []types.UID{uid})
		return took, err
	}
}

// bareDebug makes the calls for a container of the debug image in a bare pod: for a shell until it is started, else
// until it has ended and is removed.
func (b *bench) bareDebug(shell bool, command string) side {
	return func(ctx context.Context) (map[string]time.Duration, error) {
		p, _, err := b.bare.start(ctx, "debugged")
		if err != nil {
			return nil, err
		}
		time.Sleep(settling)
		main := p.container
		c := proto.Clone(p.containers[0]).(*runtimeapi.ContainerConfig)
		c.Metadata.Attempt, c.LogPath = 1, "main/1.log"
		c.Image, c.Command, c.Args = &runtimeapi.ImageSpec{Image: debugask.ToolboxImage + ":latest"}, []string{command},
			nil
		c.Tty, c.Stdin = shell, shell
		begun := time.Now()
		err = b.bare.startContainer(ctx, p, c)
		took := time.Since(begun)
		if err == nil && !shell {
			err = b.bare.awaitExit(ctx, p.container)
		}
		err = errors.Join(err, b.bare.dropContainer(ctx, p))
		if !shell {
			took = time.Since(begun)
		}
		p.container = main
		_, serr := b.bare.stop(ctx, p)
		return map[string]time.Duration{"took": took}, errors.Join(err, serr)
	}
}

// promptAfter starts a command on a terminal and returns how long it took until a shell's prompt was there; then it
// ends the shell.
func promptAfter(cmd *exec.Cmd) (time.Duration, error) {
	begun := time.Now()
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		return 0, err
	}
	defer tty.Close()
	var said bytes.Buffer
	buf := make([]byte, 4096)
	took := time.Duration(0)
	for {
		n, err := tty.Read(buf)
		said.Write(buf[:n])
		if took == 0 && bytes.Contains(said.Bytes(), []byte("# ")) {
			took = time.Since(begun)
			if _, err := tty.WriteString("exit\r"); err != nil {
				return 0, err
			}
		}
		if err != nil { // the other side is closed
			break
		}
	}
	if err := cmd.Wait(); err != nil || took == 0 {
		return 0, fmt.Errorf("%v: no prompt, or a bad end: %w: %s", cmd.Args, err, said.String())
	}
	return took, nil
}

// awaitExit waits until a container has ended. The CRI tells ends by events too, but those come later than the status
// knows.
func (b *bareClient) awaitExit(ctx context.Context, id string) error {
	for {
		r, err := b.Runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
		if err != nil || r.GetStatus().GetState() == runtimeapi.ContainerState_CONTAINER_EXITED {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// dropContainer removes the container that was started last, by force.
func (b *bareClient) dropContainer(ctx context.Context, p *barePod) error {
	_, err := b.Runtime.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: p.container})
	return err
}
