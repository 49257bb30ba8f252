// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"fmt"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// claimed makes a volume of a driver, with a secret for it, and a pod on a node that has a claim to it. All have a
// name.
func (w *nodeWorld) claimed(t *testing.T, name, node, driver string) {
	t.Helper()
	ctx, core := t.Context(), w.admin.CoreV1()
	gi := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	once := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	ref := func(secret string) *corev1.SecretReference {
		return &corev1.SecretReference{Namespace: w.ns, Name: secret}
	}
	for _, secret := range []string{name + "-stage", name + "-controller"} {
		fine(t, secret, second(core.Secrets(w.ns).Create(ctx,
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret}}, metav1.CreateOptions{})))
	}
	claim, err := core.PersistentVolumeClaims(w.ns).Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{AccessModes: once,
			VolumeName: w.ns + name, StorageClassName: ptr.To(""),
			Resources: corev1.VolumeResourceRequirements{Requests: gi}}},
		metav1.CreateOptions{})
	fine(t, "claim", err)
	fine(t, "volume", second(core.PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns + name}, Spec: corev1.PersistentVolumeSpec{AccessModes: once,
			Capacity: gi, ClaimRef: &corev1.ObjectReference{Namespace: w.ns, Name: name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver,
				VolumeHandle: name, NodeStageSecretRef: ref(name + "-stage"),
				ControllerExpandSecretRef: ref(name + "-controller")}}}}, metav1.CreateOptions{})))
	t.Cleanup(func() {
		_ = core.PersistentVolumes().Delete(context.Background(), w.ns+name, metav1.DeleteOptions{})
	})
	p := pod(name + "-has")
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
	p = createPod(t, w.admin, w.ns, p)
	fine(t, "bind", bindPod(t, w.admin, p, node))
}

// WL-17: a node's agent reads what it needs for the volumes of its pods, tells of their growth and of its drivers, and
// nothing of others.
func TestNodeVolumes(t *testing.T) {
	w := newNodeWorld(t)
	driver := "csi." + w.ns
	w.claimed(t, "m", w.one, driver)
	w.claimed(t, "o", w.two, driver)
	ctx, core, storage, get := t.Context(), w.agent.CoreV1(), w.agent.StorageV1(), metav1.GetOptions{}
	noRelation := fmt.Sprintf("no relationship found between node %q and this object", w.one)
	fine(t, "own volume", second(core.PersistentVolumes().Get(ctx, w.ns+"m", get)))
	forbidden(t, "another's volume", second(core.PersistentVolumes().Get(ctx, w.ns+"o", get)), noRelation)
	fine(t, "own volume's secret", second(core.Secrets(w.ns).Get(ctx, "m-stage", get)))
	forbidden(t, "another volume's secret", second(core.Secrets(w.ns).Get(ctx, "o-stage", get)), noRelation)
	forbidden(t, "the secret of the driver's controller", second(core.Secrets(w.ns).Get(ctx, "m-controller", get)),
		noRelation)
	fine(t, "own claim by a watch", second(core.PersistentVolumeClaims(w.ns).Watch(ctx,
		metav1.ListOptions{FieldSelector: "metadata.name=m", TimeoutSeconds: ptr.To[int64](1)})))
	forbidden(t, "another's claim by a watch", second(core.PersistentVolumeClaims(w.ns).Watch(ctx,
		metav1.ListOptions{FieldSelector: "metadata.name=o"})), noRelation)
	forbidden(t, "all claims", second(core.PersistentVolumeClaims(w.ns).List(ctx, metav1.ListOptions{})), "by name")

	patch := func(claim, text string, sub ...string) error {
		return second(core.PersistentVolumeClaims(w.ns).Patch(ctx, claim, types.MergePatchType, []byte(text),
			metav1.PatchOptions{}, sub...))
	}
	fine(t, "own claim has grown", patch("m", `{"status":{"capacity":{"storage":"2Gi"}}}`, "status"))
	forbidden(t, "own claim's phase", patch("m", `{"status":{"phase":"Lost"}}`, "status"),
		"not allowed to update fields")
	forbidden(t, "another's claim has grown", patch("o", `{"status":{"capacity":{"storage":"2Gi"}}}`, "status"),
		noRelation)
	forbidden(t, "own claim itself", patch("m", `{"metadata":{"labels":{"a":"b"}}}`))

	for _, node := range []string{w.one, w.two} {
		fine(t, "attachment", second(w.admin.StorageV1().VolumeAttachments().Create(ctx, &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: "at-" + node}, Spec: storagev1.VolumeAttachmentSpec{Attacher: driver,
				NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To(w.ns + "m")}}},
			metav1.CreateOptions{})))
	}
	fine(t, "own attachment", second(storage.VolumeAttachments().Get(ctx, "at-"+w.one, get)))
	forbidden(t, "another's attachment", second(storage.VolumeAttachments().Get(ctx, "at-"+w.two, get)), noRelation)
	forbidden(t, "all attachments", second(storage.VolumeAttachments().List(ctx, metav1.ListOptions{})))

	csinode := func(name string) *storagev1.CSINode {
		return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	fine(t, "own CSINode", second(storage.CSINodes().Create(ctx, csinode(w.one), metav1.CreateOptions{})))
	forbidden(t, "another's CSINode", second(storage.CSINodes().Create(ctx, csinode(w.two), metav1.CreateOptions{})),
		"can only change the CSINode of its own name")
	forbidden(t, "another's CSINode read", second(storage.CSINodes().Get(ctx, w.two, get)),
		"same name as the requesting")
	fine(t, "all drivers", second(storage.CSIDrivers().List(ctx, metav1.ListOptions{})))

	token := func() error {
		p := podNow(t, w.admin, w.ns, "m-has")
		return second(core.ServiceAccounts(w.ns).CreateToken(ctx, "default",
			&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"vault"},
				BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: p.Name,
					UID: p.UID}}}, metav1.CreateOptions{}))
	}
	forbidden(t, "a token that no driver wants", token(), `audience "vault" not found`)
	fine(t, "driver", second(w.admin.StorageV1().CSIDrivers().Create(ctx, &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: storagev1.CSIDriverSpec{
			TokenRequests: []storagev1.TokenRequest{{Audience: "vault"}}}}, metav1.CreateOptions{})))
	fine(t, "a token that its driver wants", token())
}
