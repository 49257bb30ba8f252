// SPDX-License-Identifier: Apache-2.0

package terms

import (
	"maps"
	"slices"
	"strings"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func persistent(change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, MountOptions: []string{"noatime"},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d",
			VolumeHandle: "h", FSType: "ext4", ReadOnly: true, VolumeAttributes: map[string]string{"a": "b"}}}}}
	for _, c := range change {
		c(pv)
	}
	return pv
}

func driver(s storagev1.CSIDriverSpec) *storagev1.CSIDriver {
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: s}
}

// WL-17: which volumes a driver has, and on what terms, also without a CSIDriver object.
func TestTerms(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"},
		Spec: corev1.PodSpec{ServiceAccountName: "sa"}}
	inline := &corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d",
		NodePublishSecretRef: &corev1.LocalObjectReference{Name: "s"}, ReadOnly: ptr.To(true)}}}
	v, err := Persistent(persistent(), nil, false)
	if err != nil || !v.Attach || v.PodInfo || v.ReadOnly ||
		v.FSGroupPolicy != storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy ||
		!maps.Equal(v.Context(pod), map[string]string{"a": "b"}) {
		t.Errorf("without an object: %+v, %v", v, err)
	}
	both := driver(storagev1.CSIDriverSpec{AttachRequired: ptr.To(false), PodInfoOnMount: ptr.To(true),
		VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecycleEphemeral}})
	v, err = Inline(pod, inline, both)
	if err != nil || v.Attach || !v.ReadOnly || *v.PublishSecret != (corev1.SecretReference{Namespace: "ns",
		Name: "s"}) ||
		!strings.HasPrefix(v.Handle, "csi-") || len(v.Handle) != 68 {
		t.Errorf("inline: %+v, %v", v, err)
	}
	if c := v.Context(pod); c[ephemeral] != "true" || c[podName] != "p" || c[podNamespace] != "ns" ||
		c[podUID] != "u" ||
		c[account] != "sa" {
		t.Errorf("told of the pod: %v", c)
	}
	for want, err := range map[string]error{
		`volume mode "Ephemeral" not supported by driver d (only supports Persistent): use a persistentVolumeClaim`: second(
			Inline(pod, inline, nil)),
		`volume mode "Persistent" not supported by driver d (only supports Ephemeral)`: second(
			Persistent(persistent(), both, false)),
		"not one of a CSI driver": second(Persistent(&corev1.PersistentVolume{}, nil, false)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func second(_ Volume, err error) error { return err }

// WL-17: to which volumes the node gives the pod's fsGroup.
func TestOwnsGroup(t *testing.T) {
	policy := func(p storagev1.FSGroupPolicy) *storagev1.CSIDriver {
		return driver(storagev1.CSIDriverSpec{FSGroupPolicy: &p})
	}
	many := func(pv *corev1.PersistentVolume) {
		pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	}
	plain := func(pv *corev1.PersistentVolume) { pv.Spec.CSI.FSType = "" }
	block := func(pv *corev1.PersistentVolume) { pv.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) }
	for name, row := range map[string]struct {
		pv            *corev1.PersistentVolume
		driver        *storagev1.CSIDriver
		readOnly, may bool
		want          bool
	}{
		"by default":                 {pv: persistent(), want: true},
		"by default, of many nodes":  {pv: persistent(many)},
		"by default, without fsType": {pv: persistent(plain)},
		"file, of many nodes": {pv: persistent(many, plain), driver: policy(storagev1.FileFSGroupPolicy),
			want: true},
		"file, but read-only":      {pv: persistent(), driver: policy(storagev1.FileFSGroupPolicy), readOnly: true},
		"file, but the driver may": {pv: persistent(), driver: policy(storagev1.FileFSGroupPolicy), may: true},
		"file, but a device":       {pv: persistent(block), driver: policy(storagev1.FileFSGroupPolicy)},
		"none":                     {pv: persistent(), driver: policy(storagev1.NoneFSGroupPolicy)},
		"no access mode that is said": {pv: persistent(func(pv *corev1.PersistentVolume) {
			pv.Spec.AccessModes = nil
		})},
	} {
		v, err := Persistent(row.pv, row.driver, row.readOnly)
		if got := v.OwnsGroup(row.may); err != nil || got != row.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// WL-17: access modes, for drivers that tell writers on one node apart and for others.
func TestCapability(t *testing.T) {
	knows := AbilityOf([]*spec.NodeServiceCapability{{Type: &spec.NodeServiceCapability_Rpc{
		Rpc: &spec.NodeServiceCapability_RPC{Type: spec.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER}}}})
	for mode, want := range map[corev1.PersistentVolumeAccessMode][2]string{
		corev1.ReadWriteOnce:    {"SINGLE_NODE_WRITER", "SINGLE_NODE_MULTI_WRITER"},
		corev1.ReadWriteOncePod: {"SINGLE_NODE_WRITER", "SINGLE_NODE_SINGLE_WRITER"},
		corev1.ReadOnlyMany:     {"MULTI_NODE_READER_ONLY", "MULTI_NODE_READER_ONLY"},
		corev1.ReadWriteMany:    {"MULTI_NODE_MULTI_WRITER", "MULTI_NODE_MULTI_WRITER"},
	} {
		v := Volume{AccessMode: mode, FSType: "xfs", MountFlags: []string{"ro"}}
		for i, can := range []Ability{{}, knows} {
			c := v.Capability(can, "7")
			if got := c.GetAccessMode().GetMode().String(); got != want[i] || c.GetMount().GetFsType() != "xfs" ||
				c.GetMount().GetVolumeMountGroup() != "7" ||
				!slices.Equal(c.GetMount().GetMountFlags(), []string{"ro"}) {
				t.Errorf("%s: %v, want %s", mode, c, want[i])
			}
		}
	}
	if c := (&Volume{Block: true}).Capability(Ability{}, ""); c.GetBlock() == nil || c.GetMount() != nil {
		t.Errorf("block: %v", c)
	}
}

// WL-17: names that others compute, too.
func TestNames(t *testing.T) {
	if got := AttachmentName("h", "d", "n"); got != "csi-"+digest("hdn") {
		t.Error(got)
	}
	if got := UniqueName("d", "h"); got != "kubernetes.io/csi/d^h" {
		t.Error(got)
	}
	p := Paths{"/k"}
	for got, want := range map[string]string{
		p.Staging(&Volume{Driver: "d", Handle: "h", Name: "pv"}): "/k/plugins/kubernetes.io/csi/d/" +
			digest("h") + "/globalmount", p.Staging(&Volume{Driver: "d", Handle: "h", Name: "pv",
			Block: true}): "/k/plugins/kubernetes.io/csi/volumeDevices/staging/pv",
		p.Target(&Volume{Name: "pv"},
			"u"): "/k/pods/u/volumes/kubernetes.io~csi/pv/mount",
		p.Target(&Volume{Name: "pv", Block: true},
			"u"): "/k/plugins/kubernetes.io/csi/volumeDevices/publish/pv/u",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// WL-17: what a node's CSINode, labels and annotations show of its drivers.
func TestNodeObjects(t *testing.T) {
	here := []Identity{{Driver: "a", NodeID: "1", Topology: map[string]string{"zone": "z"}, Most: 3},
		{Driver: "b", NodeID: "2"}}
	a, b := here[0].Entry(), here[1].Entry()
	old := storagev1.CSINodeDriver{Name: "a", NodeID: "0"}
	other := storagev1.CSINodeDriver{Name: "z", NodeID: "9"}
	for name, row := range map[string]struct {
		have           []storagev1.CSINodeDriver
		gone           []string
		want           string
		changed, again bool
	}{
		"first":    {want: "a b", changed: true},
		"as it is": {have: []storagev1.CSINodeDriver{b, a, other}, want: "b a z"},
		"one has left": {have: []storagev1.CSINodeDriver{a, b, other}, gone: []string{"z"}, want: "a b",
			changed: true},
		"one calls it other": {have: []storagev1.CSINodeDriver{old, b}, want: "b", changed: true, again: true},
	} {
		out, changed, again := MergeDrivers(row.have, here, row.gone)
		var names []string
		for _, d := range out {
			names = append(names, d.Name)
		}
		if got := strings.Join(names, " "); got != row.want || changed != row.changed || again != row.again {
			t.Errorf("%s: %s, %v, %v", name, got, changed, again)
		}
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{
		NodeIDs: `{"z":"9","b":"2"}`}}}
	labels, annotations, err := NodeMeta(node, here, []string{"z"})
	if err != nil || !maps.Equal(labels, map[string]string{"zone": "z"}) ||
		annotations[NodeIDs] != `{"a":"1","b":"2"}` || annotations[Managed] != "true" {
		t.Errorf("%v, %v, %v", labels, annotations, err)
	}
	node.Labels = map[string]string{"zone": "other"}
	if _, _, err := NodeMeta(node, here, nil); err == nil ||
		!strings.Contains(err.Error(), "kubectl label node n zone-") {
		t.Errorf("a conflict of labels: %v", err)
	}
	_, annotations, err = NodeMeta(node, nil, []string{"z", "b"})
	if value, is := annotations[NodeIDs]; err != nil || !is || value != nil {
		t.Errorf("the last driver has left: %v, %v", annotations, err)
	}
	for _, i := range []Identity{{Driver: "d"}, {Driver: "d", NodeID: strings.Repeat("x", 257)}} {
		if i.Check() == nil {
			t.Errorf("taken: %+v", i)
		}
	}
}

// WL-17: which claims grow on the node, and what they say before and after.
func TestGrow(t *testing.T) {
	pv := persistent(func(pv *corev1.PersistentVolume) {
		pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
	})
	claim := func(size string, state corev1.ClaimResourceStatus) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound,
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}}}
		if state != "" {
			c = Growing(c, state)
		}
		return c
	}
	for _, row := range []struct {
		claim *corev1.PersistentVolumeClaim
		want  bool
	}{
		{claim("1Gi", ""), true}, {claim("2Gi", ""), false}, {claim("3Gi", ""), false},
		{claim("1Gi", corev1.PersistentVolumeClaimNodeResizePending), true},
		{claim("1Gi", corev1.PersistentVolumeClaimNodeResizeInfeasible), false},
		{&corev1.PersistentVolumeClaim{}, false},
	} {
		if _, got := Grows(row.claim, pv); got != row.want {
			t.Errorf("%+v: %v", row.claim.Status, got)
		}
	}
	c := claim("1Gi", corev1.PersistentVolumeClaimNodeResizeInProgress)
	c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimFileSystemResizePending},
		{Type: corev1.PersistentVolumeClaimVolumeModifyVolumeError}}
	s := Grown(c, resource.MustParse("2Gi")).Status
	if size := s.Capacity[corev1.ResourceStorage]; size.String() != "2Gi" || s.AllocatedResourceStatuses != nil ||
		len(s.Conditions) != 1 || len(c.Status.Conditions) != 2 {
		t.Errorf("%+v", s)
	}
}

// FuzzDriverName: a name that is taken can be a folder's.
func FuzzDriverName(f *testing.F) {
	f.Add("ebs.csi.example.com", "1.0.0")
	f.Add("..", "1")
	f.Add("a/b", "v1")
	f.Fuzz(func(t *testing.T, name, version string) {
		if CheckDriver(name, []string{version}) == nil && (strings.ContainsAny(name, "/\x00^") || name[0] == '.' ||
			strings.Contains(name, "..")) {
			t.Errorf("taken: %q", name)
		}
	})
}
