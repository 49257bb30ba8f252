// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// deviceClaim asks for one device of a class.
func deviceClaim(name string) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceClaimSpec{
		Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "one",
			Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.example.com"}}}}}}
}

// deviceSamples are objects of the kinds of devices, and of what migrates the store.
func deviceSamples(m metav1.ObjectMeta) map[schema.GroupVersionResource]runtime.Object {
	gv := resourcev1.SchemeGroupVersion
	return map[schema.GroupVersionResource]runtime.Object{
		gv.WithResource("deviceclasses"): &resourcev1.DeviceClass{ObjectMeta: m, Spec: resourcev1.DeviceClassSpec{
			Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: "false"}}}}},
		gv.WithResource("devicetaintrules"): &resourcev1.DeviceTaintRule{ObjectMeta: m,
			Spec: resourcev1.DeviceTaintRuleSpec{Taint: resourcev1.DeviceTaint{Key: "a",
				Effect: resourcev1.DeviceTaintEffectNone}}},
		gv.WithResource("resourceclaims"): deviceClaim(m.Name),
		gv.WithResource("resourceclaimtemplates"): &resourcev1.ResourceClaimTemplate{ObjectMeta: m,
			Spec: resourcev1.ResourceClaimTemplateSpec{Spec: deviceClaim("").Spec}},
		gv.WithResource("resourceslices"): &resourcev1.ResourceSlice{ObjectMeta: m, Spec: resourcev1.ResourceSliceSpec{
			Driver: "gpu.example.com", NodeName: ptr.To("n"), Pool: resourcev1.ResourcePool{Name: "p",
				ResourceSliceCount: 1}, Devices: []resourcev1.Device{{Name: "d",
				Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
					"memory": {Value: resource.MustParse("1Gi")}}}}}},
		storagemigrationv1.SchemeGroupVersion.WithResource("storageversionmigrations"): &storagemigrationv1.StorageVersionMigration{
			ObjectMeta: m, Spec: storagemigrationv1.StorageVersionMigrationSpec{
				Resource: metav1.GroupResource{Resource: "secrets"}}},
	}
}

// TestDevices proves WL-01 on the kinds of devices: they are judged by Kubernetes' rules, who makes a claim is told
// that nothing gives out devices, and a claim that wants to look into others' devices needs a namespace that allows it.
func TestDevices(t *testing.T) {
	said := &warned{}
	config := adminConfig(t)
	config.WarningHandler = said
	c := clientOf(t, config)
	ns := namespace(t, c)
	claims := c.ResourceV1().ResourceClaims(ns)
	made, err := claims.Create(t.Context(), deviceClaim("c"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if e := made.Spec.Devices.Requests[0].Exactly; e.AllocationMode != resourcev1.DeviceAllocationModeExactCount ||
		e.Count != 1 {
		t.Errorf("defaults: %+v", e)
	}
	if want := "ResourceClaim c is stored, and no device is given out for it"; !said.has(want) {
		t.Errorf("no warning %q", want)
	}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "bad-" + ns}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: "device.?"}}}}}
	_, err = c.ResourceV1().DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.selectors[0].cel.expression: Invalid value") {
		t.Errorf("an expression that is none: %v", err)
	}

	nosy := deviceClaim("nosy")
	nosy.Spec.Devices.Requests[0].Exactly.AdminAccess = ptr.To(true)
	_, err = claims.Create(t.Context(), nosy, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "resource.kubernetes.io/admin-access") {
		t.Errorf("access to all devices: %v", err)
	}
	if _, err := c.CoreV1().Namespaces().Patch(t.Context(), ns, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"resource.kubernetes.io/admin-access":"true"}}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := claims.Create(t.Context(), nosy, metav1.CreateOptions{}); err != nil {
		t.Errorf("access to all devices, where that is allowed: %v", err)
	}
}

// TestMigrationsAreTold proves WL-01: who asks for objects to be stored anew is told that nothing does it.
func TestMigrationsAreTold(t *testing.T) {
	said := &warned{}
	config := adminConfig(t)
	config.WarningHandler = said
	all := clientOf(t, config).StoragemigrationV1().StorageVersionMigrations()
	m := &storagemigrationv1.StorageVersionMigration{ObjectMeta: metav1.ObjectMeta{Name: "told"},
		Spec: storagemigrationv1.StorageVersionMigrationSpec{Resource: metav1.GroupResource{Resource: "secrets"}}}
	if _, err := all.Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = all.Delete(context.Background(), "told", metav1.DeleteOptions{}) })
	if want := "StorageVersionMigration told is stored, and nothing acts on it"; !said.has(want) {
		t.Errorf("no warning %q", want)
	}
}
