import{a}from"./chunk-UAN7PZ4S.js";import"./chunk-N5W5KY2I.js";export{a as Changes};
