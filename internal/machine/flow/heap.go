package flow

import "container/heap"

// queue is a priority queue. Elements with equal keys leave it in the order of
// insertion.
type queue[T any] struct{ list list[T] }

type entry[T any] struct {
	key, put int64
	value    T
}

type list[T any] []entry[T]

func (l list[T]) Len() int { return len(l) }
func (l list[T]) Less(i, j int) bool {
	return l[i].key < l[j].key || l[i].key == l[j].key && l[i].put < l[j].put
}
func (l list[T]) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *list[T]) Push(x any)   { *l = append(*l, x.(entry[T])) }
func (l *list[T]) Pop() any {
	last := len(*l) - 1
	x := (*l)[last]
	(*l)[last] = entry[T]{}
	*l = (*l)[:last]
	return x
}

func (q *queue[T]) push(key, put int64, v T) { heap.Push(&q.list, entry[T]{key, put, v}) }
func (q *queue[T]) empty() bool              { return len(q.list) == 0 }
func (q *queue[T]) first() T                 { return q.list[0].value }
func (q *queue[T]) pop() T                   { return heap.Pop(&q.list).(entry[T]).value }
