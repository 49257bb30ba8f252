// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/test/images"
)

// database is a StatefulSet with a claim for each pod, which go with it.
const database = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 1
  selector: {matchLabels: {app: db}}
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Retain}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      securityContext: {runAsUser: 1234, runAsGroup: 1234, fsGroup: 4321}
      containers:
      - name: c
        image: BUSYBOX
        command: [sh, -c, "echo started >>/data/log; IDLE"]
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 64Mi}}}
`

// folderOf is where the volume of a claim is on the host.
func (k *kit) folderOf(claim string) string {
	k.t.Helper()
	c, err := k.Client.CoreV1().PersistentVolumeClaims(k.Namespace).Get(k.ctx(), claim, metav1.GetOptions{})
	k.must(err)
	return filepath.Join(k.Server.DataDir, "volumes", c.Spec.VolumeName)
}

// TestVolumes proves WL-15, WL-16 and WL-24 on a server of its own: a StatefulSet's claim gets a volume of the default
// class, whose data outlives the pod and a server that is killed; it grows; kubectl shows it; it goes with the
// StatefulSet as its policy says, and one that is retained stays.
func TestVolumes(t *testing.T) {
	t.Parallel()
	k := kitOn(t, own(t))
	k.objects(strings.NewReplacer("IDLE", Idle, "BUSYBOX", images.BusyboxRef).Replace(database))
	k.Kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
	k.Kubectl("get", "pvc", "data-db-0").Has("Bound", "64Mi", "RWO", "wherry-local")
	k.Kubectl("get", "storageclass").Has("wherry-local (default)", "wherry.dev/local", "WaitForFirstConsumer")
	first := k.folderOf("data-db-0")

	k.Kubectl("delete", "pod", "db-0", "--wait=true")
	k.Kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
	k.Server.Kill()
	k.again()
	k.Kubectl("delete", "pod", "db-0", "--wait=true")
	k.Kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
	k.says("db-0", "c", "wc -l </data/log", "3")
	if again := k.folderOf("data-db-0"); again != first {
		t.Errorf("WL-24 the claim had %s and has %s", first, again)
	}

	k.Kubectl("patch", "pvc", "data-db-0", "-p", `{"spec":{"resources":{"requests":{"storage":"96Mi"}}}}`)
	k.Kubectl("wait", "pvc/data-db-0", "--for=jsonpath={.status.capacity.storage}=96Mi", "--timeout=20s")
	k.usage("db-0", "data-db-0")

	pv := filepath.Base(first)
	k.Kubectl("delete", "statefulset", "db", "--cascade=foreground", "--timeout=60s")
	k.Kubectl("wait", "pv/"+pv, "--for=delete", "--timeout=30s")
	if _, err := os.Stat(first); !os.IsNotExist(err) {
		t.Errorf("WL-15 the folder of a deleted volume: %v", err)
	}
}

// usage looks for a claim's volume in the node's summary.
func (k *kit) usage(pod, claim string) {
	k.t.Helper()
	nodes, err := k.Client.CoreV1().Nodes().List(k.ctx(), metav1.ListOptions{})
	k.must(err)
	var summary struct {
		Pods []struct {
			PodRef struct{ Name, Namespace string }
			Volume []struct {
				Name          string
				CapacityBytes uint64
				PVCRef        struct{ Name string }
			}
		}
	}
	k.must(json.Unmarshal([]byte(k.Kubectl("get", "--raw", "/api/v1/nodes/"+nodes.Items[0].Name+
		"/proxy/stats/summary").Out),
		&summary))
	for _, p := range summary.Pods {
		for _, v := range p.Volume {
			if p.PodRef.Name == pod && p.PodRef.Namespace == k.Namespace && v.PVCRef.Name == claim &&
				v.CapacityBytes > 0 {
				k.claimMetric(nodes.Items[0].Name, claim)
				return
			}
		}
	}
	k.t.Errorf("WL-16 stats/summary does not show the volume of claim %s: %+v", claim, summary)
}

// claimMetric looks for how large a claim's volume is in the node's metrics (PL-36).
func (k *kit) claimMetric(node, claim string) {
	k.t.Helper()
	text := k.Kubectl("get", "--raw", "/api/v1/nodes/"+node+"/proxy/metrics").Out
	want := `kubelet_volume_stats_capacity_bytes{namespace="` + k.Namespace + `",persistentvolumeclaim="` + claim + `"} `
	if !strings.Contains(text, want) {
		k.t.Errorf("PL-36 /metrics has no %s", want)
	}
}

// TestVolumeKinds proves WL-15 and WL-17: an ephemeral volume lives with its pod, a volume made by hand is found,
// mounted at a subPath and read-only, and what waits for a volume says why.
func TestVolumeKinds(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	dir := t.TempDir()
	k.must(os.MkdirAll(filepath.Join(dir, "sub"), 0o755))
	k.must(os.WriteFile(filepath.Join(dir, "sub", "file"), []byte("here"), 0o644))
	name := "by-hand-" + k.Namespace
	k.objects(strings.NewReplacer("NAME", name, "DIR", dir).Replace(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: NAME}
spec:
  storageClassName: NAME
  accessModes: [ReadWriteMany]
  capacity: {storage: 1Gi}
  hostPath: {path: DIR, type: Directory}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: static}
spec: {storageClassName: NAME, accessModes: [ReadWriteMany], resources: {requests: {storage: 1Mi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: odd}
spec: {storageClassName: no-such, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`))
	t.Cleanup(func() {
		_ = k.Client.CoreV1().PersistentVolumes().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	k.up(`
metadata: {name: both}
spec:
  containers:
  - name: c
    command: [sh, -c, "echo x >/own/x; IDLE"]
    volumeMounts: [{name: own, mountPath: /own}, {name: st, mountPath: /st, subPath: sub}]
  volumes:
  - {name: own, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 8Mi}}}}}}
  - {name: st, persistentVolumeClaim: {claimName: static, readOnly: true}}
`)
	k.says("both", "c", "cat /st/file; touch /st/x 2>/dev/null || echo read-only", "hereread-only")
	own := k.folderOf("both-own")
	k.pod(`
metadata: {name: waits}
spec:
  containers: [{name: c, volumeMounts: [{name: v, mountPath: /v}]}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: odd}}]
`)
	waits := k.Wait("waits", "have a reason to wait", func(p *corev1.Pod) bool {
		return len(p.Status.Conditions) > 0 && p.Status.Conditions[0].Message != ""
	})
	if said := waits.Status.Conditions[0].Message; !strings.Contains(said,
		"unbound immediate PersistentVolumeClaims: odd") {
		t.Errorf("WL-15 a pod waits because %q", said)
	}
	k.WaitEvent("odd", "ProvisioningFailed", `"no-such" not found; there are the classes: `)

	k.Kubectl("delete", "pod", "both", "--wait=true")
	k.Kubectl("wait", "pvc/both-own", "--for=delete", "--timeout=30s")
	k.Kubectl("wait", "pv/"+filepath.Base(own), "--for=delete", "--timeout=30s")
	if got, err := os.ReadFile(filepath.Join(dir, "sub", "file")); err != nil || string(got) != "here" {
		t.Errorf("WL-15 a static volume after its pod: %q, %v", got, err)
	}
}
