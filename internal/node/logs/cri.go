// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// OverCRI is the Runtime behind a CRI endpoint. Only logs below dir are its business, as others may use the same
// runtime. It remembers the paths of containers it has seen, so that a look is one call. It is for one Rotator.
func OverCRI(client runtimeapi.RuntimeServiceClient, dir string) Runtime {
	return &overCRI{client: client, dir: filepath.Clean(dir) + string(filepath.Separator), paths: map[string]string{}}
}

type overCRI struct {
	client runtimeapi.RuntimeServiceClient
	dir    string
	paths  map[string]string // by container id
}

func (o *overCRI) Logs(ctx context.Context) ([]Container, error) {
	running := &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}}
	list, err := o.client.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: running})
	if err != nil {
		return nil, err
	}
	var out []Container
	known := make(map[string]string, len(list.Containers))
	for _, c := range list.Containers {
		path, ok := o.paths[c.Id]
		if !ok {
			st, err := o.client.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: c.Id})
			if err != nil {
				continue // gone since; or asked again at the next look
			}
			path = st.GetStatus().GetLogPath()
		}
		known[c.Id] = path
		if strings.HasPrefix(path, o.dir) {
			out = append(out, Container{ID: c.Id, Path: path})
		}
	}
	o.paths = known
	return out, nil
}

func (o *overCRI) Reopen(ctx context.Context, id string) error {
	_, err := o.client.ReopenContainerLog(ctx, &runtimeapi.ReopenContainerLogRequest{ContainerId: id})
	if err != nil {
		return fmt.Errorf("container %s: %w", id, err)
	}
	return nil
}
