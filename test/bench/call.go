// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

// upScript starts a pod of three sidecars, an init and a main as a careful person would in a shell: one call after the
// other, and where something has to be waited for, a look every tenth of a second. $CALL makes one CRI call; the pod's
// configs are in the folder $1.
const upScript = `set -e
dir=$1
box=$($CALL run $dir/sandbox)
start() { id=$($CALL create $box $dir/$1 $dir/sandbox); $CALL start $id; ids="$id $ids"; }
for c in 0 1 2; do
	start $c
	until $CALL exec $id true; do sleep 0.1; done
done
start 3
until $CALL exited $id; do sleep 0.1; done
start 4
echo $box $ids
`

// downScript ends it: main first, then the sidecars from the last. $1 is the sandbox, what follows are the containers.
const downScript = `set -e
box=$1
shift
for id; do $CALL stop $id; done
$CALL stopp $box
$CALL rmp $box
`

// call is one CRI call in a process of its own, as crictl makes it.
func call(socket string, args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := cri.Dial(ctx, "unix://"+socket)
	if err != nil {
		return err
	}
	defer c.Close()
	what, id := args[0], args[1]
	switch what {
	case "run":
		config := &runtimeapi.PodSandboxConfig{}
		if err := readConfig(id, config); err != nil {
			return err
		}
		r, err := c.Runtime.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: config})
		fmt.Println(r.GetPodSandboxId())
		return err
	case "create": // SANDBOX CONTAINER-CONFIG SANDBOX-CONFIG
		config, box := &runtimeapi.ContainerConfig{}, &runtimeapi.PodSandboxConfig{}
		if err := readConfig(args[2], config); err != nil {
			return err
		}
		if err := readConfig(args[3], box); err != nil {
			return err
		}
		r, err := c.Runtime.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: id, Config: config,
			SandboxConfig: box})
		fmt.Println(r.GetContainerId())
		return err
	case "start":
		_, err = c.Runtime.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: id})
	case "exec":
		r, err := c.ExecSync(ctx, id, args[2:], time.Second)
		if err == nil && r.ExitCode != 0 {
			err = fmt.Errorf("exit code %d", r.ExitCode)
		}
		return err
	case "exited":
		r, err := c.Runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
		if err == nil && r.GetStatus().GetState() != runtimeapi.ContainerState_CONTAINER_EXITED {
			err = fmt.Errorf("it is %v", r.GetStatus().GetState())
		}
		return err
	case "stop":
		_, err = c.Runtime.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: 30})
	case "stopp":
		_, err = c.Runtime.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
	case "rmp":
		_, err = c.Runtime.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id})
	default:
		return fmt.Errorf("no such call: %s", what)
	}
	return err
}

func readConfig(path string, into proto.Message) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return protojson.Unmarshal(data, into)
}

func writeConfig(path string, m proto.Message) error {
	data, err := protojson.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// inShell runs one of the scripts and returns what it said and how long it took.
func (b *bench) inShell(ctx context.Context, script string, args ...string) (string, time.Duration, error) {
	self, err := os.Executable()
	if err != nil {
		return "", 0, err
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", script, "sh"}, args...)...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("CALL=%s call %s", self, filepath.Join(b.server.dataDir, "cri.sock")))
	var said, wrong strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &wrong
	begun := time.Now()
	if err := cmd.Run(); err != nil {
		return "", 0, fmt.Errorf("shell loop: %w: %s", err, wrong.String())
	}
	return strings.TrimSpace(said.String()), time.Since(begun), nil
}
