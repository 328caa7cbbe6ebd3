import{a}from"./chunk-3JRI2WRM.js";import"./chunk-N4VWT3HE.js";export{a as Changes};
