// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
)

// TestList proves WL-16: wherry volume ls shows claims with what is used of their volumes, and volumes without a claim.
func TestList(t *testing.T) {
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
	class, used, capacity := "wherry-local", uint64(300<<20), uint64(2<<30)
	f := found{
		claims: []corev1.PersistentVolumeClaim{
			{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "new"}, Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: &class, Resources: corev1.VolumeResourceRequirements{Requests: size}},
				Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: &class, VolumeName: "pvc-1"},
				Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: size}},
		},
		volumes: []corev1.PersistentVolume{
			{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}, Spec: corev1.PersistentVolumeSpec{
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
				PersistentVolumeSource: corev1.PersistentVolumeSource{
					Local: &corev1.LocalVolumeSource{Path: "/data/volumes/pvc-1"}}}},
			{ObjectMeta: metav1.ObjectMeta{Name: "old"}, Spec: corev1.PersistentVolumeSpec{Capacity: size,
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
				PersistentVolumeSource: corev1.PersistentVolumeSource{
					HostPath: &corev1.HostPathVolumeSource{Path: "/srv/old"}}},
				Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeReleased}},
		},
		pods: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-0"}, Spec: corev1.PodSpec{
			Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}}}},
		stats: []statsapi.PodStats{{VolumeStats: []statsapi.VolumeStats{{
			PVCRef:  &statsapi.PVCReference{Namespace: "shop", Name: "data"},
			FsStats: statsapi.FsStats{UsedBytes: &used, CapacityBytes: &capacity}}}}},
	}
	var out bytes.Buffer
	if err := table(cmdline.Terminal{Out: &out, Err: &out}, list(f, true), true); err != nil {
		t.Fatal(err)
	}
	const want = `NAMESPACE   CLAIM          STATUS     SIZE   USED            CLASS          POLICY   PODS   WHERE
shop        data           Bound      2Gi    300.0Mi/2.0Gi   wherry-local   Delete   db-0   /data/volumes/pvc-1
shop        new            Pending    2Gi    -               wherry-local   -        -      -
-           <none> (old)   Released   2Gi    -               -              Retain   -      /srv/old
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	if rows := list(f, false); len(rows) != 2 {
		t.Errorf("of one namespace: %+v", rows)
	}
}
