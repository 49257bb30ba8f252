// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
)

// WL-17: a driver that counts its room has a pod wait until it has published enough; the first that is published, and
// more of it, are noticed.
func TestWaitsForRoom(t *testing.T) {
	within(t, func(string) error { return nil }, func(client *fake.Clientset) {
		ctx := context.Background()
		must := func(_ any, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "disks"}, Provisioner: "disks.example.com",
			VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)}
		must(client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{}))
		must(client.StorageV1().CSIDrivers().Create(ctx, &storagev1.CSIDriver{
			ObjectMeta: metav1.ObjectMeta{Name: class.Provisioner},
			Spec:       storagev1.CSIDriverSpec{StorageCapacity: ptr.To(true)}}, metav1.CreateOptions{}))
		claims := client.CoreV1().PersistentVolumeClaims("default")
		must(claims.Create(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class.Name,
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceStorage: resource.MustParse("2Gi")}}}}, metav1.CreateOptions{}))
		create(t, client, "p", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		})
		waits := func(when string) {
			t.Helper()
			synctest.Wait()
			pod, err := client.CoreV1().Pods("default").Get(ctx, "p", metav1.GetOptions{})
			must(pod, err)
			const want = "0/1 nodes are available: node(s) did not have enough free storage."
			if c := pod.Status.Conditions; len(c) != 1 || c[0].Message != want {
				t.Errorf("%s: %+v", when, c)
			}
			claim, err := claims.Get(ctx, "data", metav1.GetOptions{})
			must(claim, err)
			if at := claim.Annotations[storagehelpers.AnnSelectedNode]; at != "" {
				t.Errorf("%s: the volume is to be made on %s", when, at)
			}
		}
		waits("nothing is published")
		room := &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Name: "here"}, StorageClassName: class.Name,
			NodeTopology: &metav1.LabelSelector{}, Capacity: ptr.To(resource.MustParse("1Gi"))}
		capacities := client.StorageV1().CSIStorageCapacities("kube-system")
		must(capacities.Create(ctx, room, metav1.CreateOptions{}))
		waits("too little")
		room.Capacity = ptr.To(resource.MustParse("3Gi"))
		must(capacities.Update(ctx, room, metav1.UpdateOptions{}))
		synctest.Wait()
		claim, err := claims.Get(ctx, "data", metav1.GetOptions{})
		must(claim, err)
		if at := claim.Annotations[storagehelpers.AnnSelectedNode]; at != "one" {
			t.Errorf("with room for it, the volume is to be made on %q", at)
		}
	})
}

// WL-17: a driver that begins to count its room just when a pod is judged has none yet, rather than ending the server.
func TestRoomThatIsNotKnownYet(t *testing.T) {
	if room := (&volumeBook{}).world().Room(); len(room) != 0 {
		t.Errorf("there is %v", room)
	}
}
