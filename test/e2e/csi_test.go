// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/wherryproject/wherry/internal/ociimage"
	"github.com/wherryproject/wherry/test/images"
)

const csiDriver = "csi.wherry.test"

// TestCSIVolumes proves WL-17 with a driver that runs in a pod, as vendors' do; the test is its attacher and resizer. A
// pod that comes before the driver says that there is none, and runs when it has come; the node's objects show the
// driver. Volumes of claims are attached, staged once for several pods, published with secrets, given to the fsGroup,
// made larger and measured; block volumes are devices; inline volumes know their pod. The server is killed with
// volumes published, and again while one goes: at the end nothing is mounted, and the driver was asked for everything
// once.
func TestCSIVolumes(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	k := kitOn(t, own(t))
	k.importCSIDriver()
	k.pod(inlinePod("early", csiDriver, "hello"))
	k.WaitEvent("early", "FailedMount", "driver name "+csiDriver+
		" not found in the list of registered CSI drivers: this node has none")
	k.objects(csiObjects)
	driver := k.up(k.csiDriverPod())
	k.awaitLog("driver", "c", "registered true")
	k.WaitReady("early")
	k.says("early", "c", "cat /v/says", "hello")
	k.csiNode()

	detached := k.attaches()
	k.secret("keys", map[string]string{"key": "s3cret"})
	k.objects(strings.NewReplacer("NS", k.Namespace).Replace(csiClaims))
	k.up(claimPod("a", "files"))
	k.says("a", "c", "stat -c '%g %a' /v; echo kept > /v/f; cat /v/f", "2000 2775\nkept")
	k.up(claimPod("b", "files"))
	k.says("b", "c", "cat /v/f", "kept")
	k.up(`
metadata: {name: disk}
spec:
  containers: [{name: c, command: [sh, -c, IDLE], volumeDevices: [{name: v, devicePath: /dev/own}]}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: disk}}]
`)
	k.says("disk", "c", "echo block > /dev/own; head -c 5 /dev/own; test -b /dev/own && echo device", "blockdevice")
	if s := k.Kubectl("get", "--raw", "/api/v1/nodes/"+k.NodeName+"/proxy/stats/summary").Out; !strings.Contains(
		strings.Join(strings.Fields(s), ""), `"availableBytes":600,"capacityBytes":1000,"usedBytes":400`) {
		t.Errorf("WL-17 the node's summary does not have what the driver says of its volumes: %s", s)
	}
	k.grows()
	k.pod(inlinePod("other", "other.example", ""))
	k.WaitEvent("other", "FailedMount", "other.example not found in the list of registered CSI drivers: this node has "+
		csiDriver)
	k.pod(strings.Replace(inlinePod("bad", csiDriver, ""), "says:", "fail: out of order, says:", 1))
	k.WaitEvent("bad", "FailedMount", "NodePublishVolume: rpc error: code = Internal desc = out of order")
	k.Delete("other")
	bad := k.Get("bad")
	k.Delete("bad")
	k.WaitGone(bad)

	k.Server.Kill()
	k.again()
	k.says("a", "c", "cat /v/f", "kept")
	k.Kubectl("delete", "pod", "b", "--wait=true")
	k.says("a", "c", "cat /v/f", "kept")
	gone := []*corev1.Pod{k.Get("a"), k.Get("disk"), k.Get("early")}
	k.Kubectl("delete", "pod", "a", "disk", "early", "--force", "--grace-period=0", "--wait=false")
	k.Server.Kill()
	k.again()
	detached()
	for _, pod := range gone {
		k.AwaitNoTrace(pod)
	}
	k.csiAsked(map[string]int{"stage files lun=7 secret=s3cret": 1, "stage disk lun=7": 1, "unstage files": 1,
		"unstage disk": 1, "publish files mode=SINGLE_NODE_MULTI_WRITER pod=a secret=s3cret token=vault": 1,
		"publish files mode=SINGLE_NODE_MULTI_WRITER pod=b secret=s3cret token=vault": 1,
		"publish disk mode=SINGLE_NODE_MULTI_WRITER pod=disk token=vault":             1,
		"expand files secret=s3cret to=2147483648":                                    1,
		"publish inline mode=SINGLE_NODE_MULTI_WRITER pod=early token=vault":          1})
	k.nothingMounted()
	k.Delete("driver")
	k.WaitGone(driver)
}

const csiObjects = `
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: csi.wherry.test}
spec:
  attachRequired: true
  podInfoOnMount: true
  fsGroupPolicy: File
  volumeLifecycleModes: [Persistent, Ephemeral]
  tokenRequests: [{audience: vault}]
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: csi}
provisioner: csi.wherry.test
allowVolumeExpansion: true
`

const csiClaims = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: files}
spec:
  storageClassName: csi
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  csi:
    driver: csi.wherry.test
    volumeHandle: files
    nodeStageSecretRef: {namespace: NS, name: keys}
    nodePublishSecretRef: {namespace: NS, name: keys}
    nodeExpandSecretRef: {namespace: NS, name: keys}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: files}
spec: {storageClassName: csi, volumeName: files, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  storageClassName: csi
  volumeMode: Block
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Mi}
  csi: {driver: csi.wherry.test, volumeHandle: disk}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk}
spec:
  {storageClassName: csi, volumeName: disk, volumeMode: Block, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`

func inlinePod(name, driver, says string) string {
	return fmt.Sprintf(`
metadata: {name: %s}
spec:
  containers: [{name: c, command: [sh, -c, IDLE], volumeMounts: [{name: v, mountPath: /v}]}]
  volumes: [{name: v, csi: {driver: %s, volumeAttributes: {says: "%s"}}}]
`, name, driver, says)
}

func claimPod(name, claim string) string {
	return fmt.Sprintf(`
metadata: {name: %s}
spec:
  securityContext: {runAsUser: 1000, fsGroup: 2000}
  containers: [{name: c, command: [sh, -c, IDLE], volumeMounts: [{name: v, mountPath: /v}]}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: %s}}]
`, name, claim)
}

// csiDriverPod is the driver: it mounts the kubelet's folder where it is, and passes on what it mounts there.
func (k *kit) csiDriverPod() string {
	return strings.NewReplacer("DRIVER", csiDriver, "KUBELET", filepath.Join(k.Server.DataDir, "kubelet"), "VOLUMES",
		k.t.TempDir()).Replace(`
metadata: {name: driver}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - name: c
    image: "wherry.test/csidriver:1"
    imagePullPolicy: Never
    args: [DRIVER, $(NODE), KUBELET]
    env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
    securityContext: {privileged: true}
    volumeMounts:
    - {name: kubelet, mountPath: KUBELET, mountPropagation: Bidirectional}
    - {name: volumes, mountPath: /volumes}
    - {name: dev, mountPath: /dev}
  volumes:
  - {name: kubelet, hostPath: {path: KUBELET}}
  - {name: volumes, hostPath: {path: VOLUMES}}
  - {name: dev, hostPath: {path: /dev}}
`)
}

// importCSIDriver builds the image of the driver.
func (k *kit) importCSIDriver() {
	k.t.Helper()
	binary := filepath.Join(k.t.TempDir(), "csidriver")
	k.must(images.GoBuild(k.ctx(), binary, "github.com/wherryproject/wherry/test/images/csidriver"))
	data, err := os.ReadFile(binary)
	k.must(err)
	img, err := ociimage.Build(ociimage.Spec{Files: []ociimage.File{{Path: "/csidriver", Data: data}},
		Entrypoint: []string{"/csidriver"}})
	k.importImage("wherry.test/csidriver:1", img, err)
}

// csiNode looks whether the node's objects show the driver.
func (k *kit) csiNode() {
	k.t.Helper()
	name := k.NodeName
	n, err := k.Client.StorageV1().CSINodes().Get(k.ctx(), name, metav1.GetOptions{})
	k.must(err)
	if d := n.Spec.Drivers; len(d) != 1 || d[0].Name != csiDriver || d[0].NodeID != "id-of-"+name ||
		d[0].Allocatable == nil || *d[0].Allocatable.Count != 7 ||
		!slices.Equal(d[0].TopologyKeys, []string{"topology.csi.wherry.test/rack"}) {
		k.t.Errorf("WL-17 CSINode has %+v", d)
	}
	k.nodeUntil("with the driver's label and annotation", func(n *corev1.Node) bool {
		return n.Labels["topology.csi.wherry.test/rack"] == "r1" &&
			n.Annotations["csi.volume.kubernetes.io/nodeid"] == `{"csi.wherry.test":"id-of-`+name+`"}`
	})
}

// attaches plays the driver's attacher until the test ends: every attachment is attached, with a number for the driver.
// What it returns waits until there is none any more.
func (k *kit) attaches() (gone func()) {
	ctx, cancel := context.WithCancel(k.Context())
	done := make(chan struct{})
	k.t.Cleanup(func() { cancel(); <-done })
	attachments := k.Client.StorageV1().VolumeAttachments()
	go func() {
		defer close(done)
		for ctx.Err() == nil { // the server is killed meanwhile
			w, err := attachments.Watch(ctx, metav1.ListOptions{})
			if err != nil {
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
				continue
			}
			for e := range w.ResultChan() {
				a, ok := e.Object.(*storagev1.VolumeAttachment)
				if ok && e.Type != watch.Deleted && !a.Status.Attached {
					_, _ = attachments.Patch(ctx, a.Name, types.MergePatchType,
						[]byte(`{"status":{"attached":true,"attachmentMetadata":{"lun":"7"}}}`), metav1.PatchOptions{},
						"status")
				}
			}
		}
	}()
	return func() {
		k.t.Helper()
		k.Kubectl("wait", "volumeattachment", "--all", "--for=delete", "--timeout=60s")
		k.nodeUntil("without volumes", func(n *corev1.Node) bool {
			return len(n.Status.VolumesAttached) == 0 && len(n.Status.VolumesInUse) == 0
		})
	}
}

// grows plays the driver's resizer: its controller has made a volume larger, the node does the rest.
func (k *kit) grows() {
	k.t.Helper()
	k.Kubectl("patch", "pvc", "files", "-p", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
	k.Kubectl("patch", "pv", "files", "-p", `{"spec":{"capacity":{"storage":"2Gi"}}}`)
	k.Kubectl("patch", "pvc", "files", "--subresource=status", "-p",
		`{"status":{"conditions":[{"type":"FileSystemResizePending","status":"True"}],"allocatedResourceStatuses":{"storage":"NodeResizePending"}}}`)
	k.Kubectl("wait", "pvc/files", "--for=jsonpath={.status.capacity.storage}=2Gi", "--timeout=30s")
	claim, err := k.Client.CoreV1().PersistentVolumeClaims(k.Namespace).Get(k.ctx(), "files", metav1.GetOptions{})
	k.must(err)
	if s := claim.Status; len(s.Conditions)+len(s.AllocatedResourceStatuses) > 0 {
		text, _ := json.Marshal(s)
		k.t.Errorf("WL-17 a claim whose volume has grown: %s", text)
	}
}

// csiAsked waits until the driver was asked for everything, and compares how often. What a pod that was refused led to
// is not looked at.
func (k *kit) csiAsked(want map[string]int) {
	k.t.Helper()
	got, unpublished := map[string]int{}, map[string]int{}
	for line := range strings.Lines(k.awaitLog("driver", "c", "unstage disk")) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "registered"), strings.Contains(line, "pod=bad"):
		case strings.HasPrefix(line, "unpublish "):
			unpublished[strings.TrimPrefix(line, "unpublish ")]++
		default:
			got[line]++
		}
	}
	for line, n := range want {
		if got[line] != n {
			k.t.Errorf("WL-17 the driver was asked %d times to %s", got[line], line)
		}
		delete(got, line)
	}
	for line := range got {
		k.t.Errorf("WL-17 the driver was asked to %s", line)
	}
	if unpublished["files"] != 2 || unpublished["disk"] != 1 {
		k.t.Errorf("WL-17 unpublished: %v", unpublished)
	}
}

// nothingMounted looks whether anything of a driver is left below the kubelet's folder.
func (k *kit) nothingMounted() {
	k.t.Helper()
	folder := filepath.Join(k.Server.DataDir, "kubelet")
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(folder + "/"))
	k.must(err)
	for _, m := range mounts {
		k.t.Errorf("WL-17 mounted still: %s", m.Mountpoint)
	}
	for _, glob := range []string{"pods/*", "plugins/kubernetes.io/csi/" + csiDriver + "/*",
		"plugins/kubernetes.io/csi/volumeDevices/*/*"} {
		left, err := filepath.Glob(filepath.Join(folder, glob))
		k.must(err)
		if len(left) > 0 {
			k.t.Errorf("WL-17 left: %v", left)
		}
	}
}
