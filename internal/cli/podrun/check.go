// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/wherryproject/wherry/internal/manifest"
)

// check refuses what a run cannot take, before anything is done.
func check(client kubernetes.Interface, objects []manifest.Object) error {
	pods := 0
	var errs []error
	for _, o := range objects {
		if _, ok := verbsFor(client, "", o.Object); !ok {
			errs = append(errs, fmt.Errorf("%s: wherry run does not support %s: %s", place(o), o.GVK.Kind,
				instead(o, serves(client, o))))
		}
		if _, ok := o.Object.(*corev1.Pod); ok {
			pods++
		}
	}
	if pods == 0 && len(errs) == 0 {
		return errors.New("there is no pod in the manifest; use wherry kubectl apply for other objects")
	}
	return errors.Join(errs...)
}

// serves asks the server whether it has a kind at all. One that does not answer is taken not to.
func serves(client kubernetes.Interface, o manifest.Object) bool {
	list, err := client.Discovery().ServerResourcesForGroupVersion(o.GVK.GroupVersion().String())
	if err != nil {
		return false
	}
	for _, r := range list.APIResources {
		if r.Kind == o.GVK.Kind {
			return true
		}
	}
	return false
}

// instead says what can be done with an object that a run does not take.
func instead(o manifest.Object, served bool) string {
	switch path := templateOf(o.Object); {
	case served && path != "":
		return "create it with wherry kubectl apply -f; wherry run supports pods and " + theirs
	case served:
		return fmt.Sprintf("create it first, with wherry kubectl apply -f and a manifest without pods; wherry run supports pods and %s", theirs)
	case path != "":
		return fmt.Sprintf("only pods can be run here: make one from its %s, with apiVersion: v1, kind: Pod, a metadata.name, and the template's spec", path)
	}
	return "the server does not have this kind: leave it out; wherry run supports pods and " + theirs
}

// theirs is what pods use.
const theirs = "the ConfigMaps, Secrets, ServiceAccounts, Services and Namespaces they use"

// templateOf is where the template of the pods stands that an object asks for, "" if it asks for none.
func templateOf(obj runtime.Object) string {
	switch obj.(type) {
	case *appsv1.Deployment, *appsv1.StatefulSet, *appsv1.DaemonSet, *appsv1.ReplicaSet, *batchv1.Job,
		*corev1.ReplicationController:
		return "spec.template"
	case *batchv1.CronJob:
		return "spec.jobTemplate.spec.template"
	}
	return ""
}
