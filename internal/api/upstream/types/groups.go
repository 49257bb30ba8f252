// SPDX-License-Identifier: Apache-2.0

package types

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/apis/apps"
	appsv1 "k8s.io/kubernetes/pkg/apis/apps/v1"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	autoscalingv1 "k8s.io/kubernetes/pkg/apis/autoscaling/v1"
)

// Apps is group apps. Its internal version also holds the Scale of its subresources.
func Apps(s *runtime.Scheme) error { return all(s, apps.AddToScheme, appsv1.AddToScheme) }

// Autoscaling is group autoscaling.
func Autoscaling(s *runtime.Scheme) error {
	return all(s, autoscaling.AddToScheme, autoscalingv1.AddToScheme)
}

func all(s *runtime.Scheme, adds ...func(*runtime.Scheme) error) error {
	for _, add := range adds {
		if err := add(s); err != nil {
			return err
		}
	}
	return nil
}
