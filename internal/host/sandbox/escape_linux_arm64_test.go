package sandbox_test

var escapesHere []escape
