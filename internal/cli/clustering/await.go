// SPDX-License-Identifier: Apache-2.0

package clustering

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/progress"
)

// judge says whether an object is as it should be, and how far it is.
type judge func(*unstructured.Unstructured) (done bool, say string, err error)

// await waits until the API and the agents run and kube-apiserver reaches the API.
func (c *connection) await(ctx context.Context, t cmdline.Terminal, namespace string) error {
	apps := c.objects.Resource(appsv1.SchemeGroupVersion.WithResource("deployments")).Namespace(namespace)
	if err := until(ctx, t, apps, apiName, judgeDeployment); err != nil {
		return err
	}
	if err := c.awaitAgents(ctx, t, namespace); err != nil {
		return err
	}
	return until(ctx, t, c.objects.Resource(apiServices()), registrationName, judgeRegistration)
}

// until watches one object until it is as it should be.
func until(ctx context.Context, t cmdline.Terminal, at dynamic.ResourceInterface, name string, decide judge) error {
	only := selected(at, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
	})
	printed := ""
	_, err := watchtools.UntilWithSync(ctx, only, &unstructured.Unstructured{}, nil, func(e watch.Event) (bool, error) {
		o, is := e.Object.(*unstructured.Unstructured)
		if e.Type == watch.Deleted {
			return false, fmt.Errorf("%s was deleted meanwhile", name)
		}
		if !is {
			return false, nil
		}
		done, say, err := decide(o)
		if say != "" && say != printed {
			printed = say
			fmt.Fprintln(t.Err, say)
		}
		return done, err
	})
	return err
}

// selected lists and watches some objects.
func selected(at dynamic.ResourceInterface, only func(*metav1.ListOptions)) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			only(&o)
			return at.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			only(&o)
			return at.Watch(ctx, o)
		},
	}
}

func judgeDeployment(o *unstructured.Unstructured) (bool, string, error) {
	var d appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err != nil {
		return false, "", err
	}
	s := progress.Workload(&d)
	if s.Text != "" {
		s.Text = "API: " + s.Text
	}
	return s.Ready, s.Text, nil
}

func judgeRegistration(o *unstructured.Unstructured) (bool, string, error) {
	c := conditionOf(o, "Available")
	if c.True {
		return true, "API: available", nil
	}
	return false, "API: not available yet: " + oneSentence(c.Reason, c.Message), nil
}

// printAgents prints on which nodes no agent runs and why, and, if waiting was in vain, why that was.
func (c *connection) printAgents(ctx context.Context, t cmdline.Terminal, vain error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	f, err := c.look(ctx)
	if err != nil {
		return errors.Join(vain, err)
	}
	s := stateOf(f)
	for _, a := range s.Agents {
		if !a.Ready {
			fmt.Fprintf(t.Err, "no agent runs on node %s: %s\n", a.Node, a.Why)
		}
	}
	switch {
	case vain == nil:
		fmt.Fprintln(t.Err,
			"pods can be debugged by whoever has the role for it, for example: kubectl create rolebinding "+
				"debuggers -n NAMESPACE --clusterrole=wherry-debug --user=NAME")
		return nil
	case !wait.Interrupted(vain):
		return fmt.Errorf("everything was applied, but not all of it is running: %w", vain)
	case s.API.Why != "":
		return fmt.Errorf("everything was applied, but not all of it is running: %s\nsee wherry cluster status, and "+
			"wherry why deployment/%s -n %s", s.API.Why, apiName, s.Namespace)
	}
	return errors.New("everything was applied, but not all of it is running yet: see wherry cluster status")
}
