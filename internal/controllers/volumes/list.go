// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/controller/volume/ephemeral"

	"github.com/wherryproject/wherry/internal/controllers/ondemand"
)

// Names of the controllers, and of Kubernetes' roles for them.
const (
	binderName    = "persistent-volume-binder"
	claimsName    = "pvc-protection-controller"
	volumesName   = "pv-protection-controller"
	ephemeralName = "ephemeral-volume-controller"
)

// workers is how many ephemeral volumes are made at the same time.
const workers = 2

// Controllers are all, in the order in which the server looks for their objects when it starts.
func Controllers() []ondemand.Controller {
	claims, volumes := start("persistentvolumeclaims"), start("persistentvolumes")
	return []ondemand.Controller{
		{Name: binderName, Starts: []ondemand.Start{claims, volumes}, Code: own,
			New: func(_ context.Context, k *ondemand.Kit) (func(context.Context), error) {
				return newBinder(k).run, nil
			}},
		{Name: claimsName, Starts: []ondemand.Start{claims}, Code: own,
			New: func(_ context.Context, k *ondemand.Kit) (func(context.Context), error) { return keepClaims(k), nil }},
		{Name: volumesName, Starts: []ondemand.Start{volumes}, Code: own,
			New: func(_ context.Context,
				k *ondemand.Kit) (func(context.Context), error) {
				return keepVolumes(k), nil
			}},
		ephemeralVolumes(),
	}
}

// own is where these controllers' code is.
const own = "github.com/wherryproject/wherry/internal/controllers/volumes"

func start(resource string) ondemand.Start {
	return ondemand.Start{Kind: corev1.SchemeGroupVersion.WithResource(resource)}
}

// ephemeralVolumes makes the claims of pods with ephemeral volumes.
func ephemeralVolumes() ondemand.Controller {
	return ondemand.Controller{
		Name: ephemeralName, Starts: []ondemand.Start{ephemeralPod()},
		Code: "k8s.io/kubernetes/pkg/controller/volume/ephemeral",
		New: func(ctx context.Context, k *ondemand.Kit) (func(context.Context), error) {
			core := k.Informers.Core().V1()
			c, err := ephemeral.NewController(ctx, k.Client, core.Pods(), core.PersistentVolumeClaims())
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context) { c.Run(ctx, workers) }, nil
		},
	}
}

// ephemeralPod is a pod with an ephemeral volume. Pods there were before the server started have their claims, or are
// looked through once.
func ephemeralPod() ondemand.Start {
	has := func(pod *corev1.Pod) bool {
		for i := range pod.Spec.Volumes {
			if pod.Spec.Volumes[i].Ephemeral != nil {
				return true
			}
		}
		return false
	}
	return ondemand.Start{
		Kind: corev1.SchemeGroupVersion.WithResource("pods"),
		If: func(_ schema.GroupResource, obj runtime.Object) bool {
			pod, ok := obj.(*corev1.Pod)
			return ok && has(pod)
		},
		There: func(ctx context.Context, l ondemand.Looking) (bool, error) {
			list, err := l.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
			if err != nil {
				return false, err
			}
			for i := range list.Items {
				if has(&list.Items[i]) {
					return true, nil
				}
			}
			return false, nil
		},
	}
}
