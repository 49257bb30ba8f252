// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/wherryproject/wherry/internal/node/devices/devicetest"
	"github.com/wherryproject/wherry/internal/node/kubeletsocket"
)

// TestOnOneNUMANode proves PL-33: with the policies Static and single-numa-node a guaranteed pod has CPUs, memory and
// device of one NUMA node and may use no other's memory, which podresources tells, also after the server was killed; a
// pod whose device is elsewhere is refused with TopologyAffinityError; reserved memory is not allocatable; and a pod's
// memory cannot be changed in place.
func TestOnOneNUMANode(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	if runtime.NumCPU() < 2 {
		t.Skip("this machine has one CPU, which nobody can have to himself")
	}
	if _, err := os.Stat("/sys/devices/system/node/node0"); err != nil {
		t.Skip("this machine's kernel knows no NUMA nodes")
	}
	k := kitOn(t, own(t, ServerOptions{Args: []string{"--cpu-manager-policy", "static", "--reserved-cpus", "0",
		"--memory-manager-policy", "Static", "--reserved-memory", "0:memory=300Mi",
		"--topology-manager-policy", "single-numa-node"}}))
	if s := k.nodeNow().Status; s.Capacity.Memory().Value()-s.Allocatable.Memory().Value() < 300<<20 {
		t.Errorf("of %v memory %v is allocatable", s.Capacity.Memory(), s.Allocatable.Memory())
	}
	p := &devicetest.Plugin{Folder: filepath.Join(k.Server.DataDir, "kubelet/device-plugins"), Resource: gpu,
		Options: &plugin.DevicePluginOptions{}}
	k.must(p.Start(devicetest.Device("far", true, 63)))
	t.Cleanup(p.Stop)
	k.nodeHas(1, 1)

	const asks = `
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: c, command: [sh, -c, IDLE], resources: {limits: {cpu: 1, memory: 32Mi, vendor.example/gpu: 1}}}]
`
	k.pod("metadata: {name: apart}" + asks)
	apart := k.Wait("apart", "refused", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
	const message = "Resources cannot be allocated with Topology locality"
	if apart.Status.Reason != "TopologyAffinityError" || !strings.Contains(apart.Status.Message, message) {
		t.Errorf("it was refused with %s: %s", apart.Status.Reason, apart.Status.Message)
	}
	k.WaitEvent("apart", "TopologyAffinityError", message)

	p.Set(devicetest.Device("near", true, 0), devicetest.Device("far", true, 63))
	k.nodeHas(2, 2)
	pod := k.up("metadata: {name: together}" + asks)
	k.says("together", "c", "echo $DEVICES; grep Mems_allowed_list /proc/self/status | cut -f2", "near\n0")
	k.onNode0(pod)
	k.Server.Kill()
	k.again()
	k.onNode0(k.Get("together"))
	if _, err := k.resize("together", "containers", "c", `"memory":"48Mi"`, `"memory":"48Mi"`); err != nil {
		t.Errorf("resizing: %v", err)
	}
	k.Wait("together", "told that its memory stays", func(p *corev1.Pod) bool {
		c := resizeCondition(p, corev1.PodResizePending)
		return c != nil && c.Reason == corev1.PodReasonInfeasible &&
			strings.Contains(c.Message, "alongside Memory Manager static policy")
	})
	k.Delete("together")
	k.WaitGone(pod)
	if left, err := filepath.Glob(filepath.Join(k.Server.DataDir, "pods", string(pod.UID), "*")); err != nil ||
		len(left) > 0 {
		t.Errorf("of the pod there is left %v, %v", left, err)
	}
}

// onNode0 expects that a pod's only container was made with the memory of NUMA node 0 alone, and that podresources
// tells.
func (k *kit) onNode0(p *corev1.Pod) {
	k.t.Helper()
	_, id, _ := strings.Cut(Status(p, "c").ContainerID, "://")
	files, err := filepath.Glob(filepath.Join(k.Server.DataDir, "runtime/run/*/k8s.io", id, "config.json"))
	k.must(err)
	if len(files) != 1 {
		k.t.Fatalf("the runtime has the configurations %v of container %s", files, id)
	}
	text, err := os.ReadFile(files[0])
	k.must(err)
	var config struct {
		Linux struct {
			Resources struct{ CPU struct{ Mems string } }
		}
	}
	k.must(json.Unmarshal(text, &config))
	if got := config.Linux.Resources.CPU.Mems; got != "0" {
		k.t.Errorf("the container may use the memory of NUMA nodes %q", got)
	}
	conn, err := grpc.NewClient("passthrough:///podresources", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return kubeletsocket.Dial(ctx, filepath.Join(k.Server.DataDir, "kubelet/pod-resources", kubeletsocket.Name))
		}))
	k.must(err)
	defer conn.Close()
	told, err := podresourcesapi.NewPodResourcesListerClient(conn).Get(k.ctx(),
		&podresourcesapi.GetPodResourcesRequest{PodNamespace: p.Namespace, PodName: p.Name})
	k.must(err)
	c := told.GetPodResources().GetContainers()
	if len(c) != 1 || len(c[0].GetMemory()) != 1 || c[0].GetMemory()[0].GetSize() != 32<<20 ||
		len(c[0].GetMemory()[0].GetTopology().GetNodes()) != 1 || len(c[0].GetDevices()) != 1 ||
		len(c[0].GetCpuIds()) != 1 {
		k.t.Errorf("podresources tells of %v", c)
	}
}
