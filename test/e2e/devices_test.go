// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/wherryproject/wherry/internal/node/kubeletsocket"
	"github.com/wherryproject/wherry/internal/ociimage"
	"github.com/wherryproject/wherry/test/images"
)

const gpu = "vendor.example/gpu"

// TestDevicePlugins proves PL-34: a device plug-in that runs in a pod, as vendors' do, registers; its devices are in
// the node's capacity, and in containers with variable, mount and device; they are counted, kept over restarts of
// container, server and plug-in, and given back; podresources tells who has what. A plug-in that ends makes them
// unhealthy.
func TestDevicePlugins(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	k := kitOn(t, own(t))
	k.importPlugin()
	plugin := k.up(fmt.Sprintf(`
metadata: {name: plugin}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - {name: c, image: "wherry.test/deviceplugin:1", imagePullPolicy: Never, args: [%s, a, b],
     volumeMounts: [{name: sockets, mountPath: /var/lib/kubelet/device-plugins}]}
  volumes: [{name: sockets, hostPath: {path: %s/kubelet/device-plugins}}]
`, gpu, k.Server.DataDir))
	k.awaitLog("plugin", "c", "registered")
	k.nodeHas(2, 2)

	const asks = `
spec:
  terminationGracePeriodSeconds: 0
  initContainers: [{name: first, command: [sh, -c, 'echo $DEVICES > /v/first'], resources: {limits: {vendor.example/gpu: 1}}, volumeMounts: [{name: v, mountPath: /v}]}]
  containers: [{name: c, command: [sh, -c, IDLE], resources: {limits: {vendor.example/gpu: 1}}, volumeMounts: [{name: v, mountPath: /v}]}]
  volumes: [{name: v, emptyDir: {}}]
`
	k.up("metadata: {name: one}" + asks)
	k.says("one", "c",
		"echo $DEVICES; cat /v/first; echo x > /dev/vendor/a && ls /dev/vendor; test -s /etc/vendor && echo mounted",
		"a\na\na\nmounted")
	k.health("one", corev1.ResourceHealthStatusHealthy)
	k.up("metadata: {name: two}" + strings.ReplaceAll(asks, "first", "start"))
	k.says("two", "c", "echo $DEVICES", "b")
	k.pod("metadata: {name: three}" + asks)
	k.WaitEvent("three", "FailedScheduling", "Insufficient "+gpu)
	k.tellsDevices(map[string]string{"one/c": "a", "two/c": "b", "plugin/c": ""})

	k.stop1("one", "c") // restarted with what it had
	k.Wait("one", "restarted", startedAgain)
	k.says("one", "c", "echo $DEVICES", "a")

	k.Server.Kill()
	k.again()
	k.awaitLog("plugin", "c", "registered again")
	k.nodeHas(2, 2)
	k.tellsDevices(map[string]string{"one/c": "a", "two/c": "b", "plugin/c": ""})
	k.stop1("two", "c")
	k.Wait("two", "restarted", startedAgain)
	k.says("two", "c", "echo $DEVICES", "b")

	k.Delete("one") // its object goes at once: what it has is given to nobody before it has ended
	k.Wait("three", "running", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	k.says("three", "c", "echo $DEVICES", "a")

	k.Delete("plugin")
	k.nodeHas(2, 0)
	k.WaitGone(plugin)
	k.health("three", corev1.ResourceHealthStatusUnknown)
	k.says("three", "c", "echo $DEVICES", "a") // it goes on
}

func startedAgain(p *corev1.Pod) bool {
	s := p.Status.ContainerStatuses[0]
	return s.RestartCount == 1 && s.State.Running != nil
}

// importPlugin builds the image of the plug-in.
func (k *kit) importPlugin() {
	k.t.Helper()
	binary := filepath.Join(k.t.TempDir(), "deviceplugin")
	k.must(images.GoBuild(k.ctx(), binary, "github.com/wherryproject/wherry/test/images/deviceplugin"))
	data, err := os.ReadFile(binary)
	k.must(err)
	img, err := ociimage.Build(ociimage.Spec{Files: []ociimage.File{{Path: "/deviceplugin", Data: data}},
		Entrypoint: []string{"/deviceplugin"}})
	k.importImage("wherry.test/deviceplugin:1", img, err)
}

// nodeHas waits until so many devices are on the node, and so many of them are allocatable.
func (k *kit) nodeHas(capacity, allocatable int64) {
	k.t.Helper()
	k.nodeUntil(fmt.Sprintf("with %d devices, %d allocatable", capacity, allocatable), func(n *corev1.Node) bool {
		c, a := n.Status.Capacity[gpu], n.Status.Allocatable[gpu]
		return c.Value() == capacity && a.Value() == allocatable
	})
}

// health waits until the status of a pod's only main container says how its only device is.
func (k *kit) health(pod string, want corev1.ResourceHealthStatus) {
	k.t.Helper()
	k.Wait(pod, "telling that its device is "+string(want), func(p *corev1.Pod) bool {
		s := p.Status.ContainerStatuses[0].AllocatedResourcesStatus
		return len(s) == 1 && s[0].Name == gpu && len(s[0].Resources) == 1 && s[0].Resources[0].Health == want
	})
}

// tellsDevices asks the node who has which devices: those of POD/CONTAINER.
func (k *kit) tellsDevices(want map[string]string) {
	k.t.Helper()
	conn, err := grpc.NewClient("passthrough:///podresources", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return kubeletsocket.Dial(ctx, filepath.Join(k.Server.DataDir, "kubelet/pod-resources", kubeletsocket.Name))
		}))
	k.must(err)
	defer conn.Close()
	list, err := podresourcesapi.NewPodResourcesListerClient(conn).List(k.ctx(),
		&podresourcesapi.ListPodResourcesRequest{})
	k.must(err)
	for _, p := range list.GetPodResources() {
		for _, c := range p.GetContainers() {
			if p.GetNamespace() != k.Namespace || p.GetName() == "three" {
				continue
			}
			var ids []string
			for _, d := range c.GetDevices() {
				ids = append(ids, d.GetDeviceIds()...)
			}
			who := p.GetName() + "/" + c.GetName()
			if got, known := want[who], strings.Join(ids, ","); got != known {
				k.t.Errorf("%s has %q, want %q", who, known, got)
			}
			delete(want, who)
		}
	}
	if len(want) > 0 {
		k.t.Errorf("nothing is told of %v", want)
	}
}
